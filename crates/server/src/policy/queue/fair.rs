//! A queue in which keys take turns, and within a key its connections.

use std::collections::{HashMap, VecDeque};

/// Whom a request counts for when turns are shared out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Flow {
    /// The key's number; 0 for those who need none.
    pub(crate) key: u64,
    pub(crate) connection: u64,
}

/// Requests for IDs in the order in which they are served.
///
/// Each key in turn gets as many IDs as `quantum`, however many it wants and however it asks for them; of one key,
/// each connection in turn is served one request, or `quantum` IDs of it.
#[derive(Debug)]
pub(super) struct FairQueue<T> {
    keys: HashMap<u64, Key<T>>,
    /// Keys that wait, the next one first.
    order: VecDeque<u64>,
    quantum: u32,
    len: usize,
    ids: u64,
}

/// The requests of one key.
#[derive(Debug)]
struct Key<T> {
    connections: HashMap<u64, VecDeque<Entry<T>>>,
    /// Connections that wait, the next one first.
    order: VecDeque<u64>,
    len: usize,
    ids: u64,
    /// What is left of the quantum in this turn.
    credit: u32,
}

#[derive(Debug)]
struct Entry<T> {
    item: T,
    ids: u32,
}

/// A request whose turn it is.
#[derive(Debug)]
pub(super) struct Turn<T> {
    pub(super) flow: Flow,
    pub(super) item: T,
    /// IDs that it still wants.
    pub(super) ids: u32,
    /// IDs that it may have in this turn.
    pub(super) most: u32,
}

/// What waits in the queue for a key, and beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KeyBacklog {
    /// Keys that wait, with this one.
    pub(super) keys: usize,
    /// Requests of this key that wait.
    pub(super) own: usize,
    /// IDs that this key waits for.
    pub(super) own_ids: u64,
}

impl<T> FairQueue<T> {
    pub(super) fn new(quantum: u32) -> Self {
        Self {
            keys: HashMap::new(),
            order: VecDeque::new(),
            quantum: quantum.max(1),
            len: 0,
            ids: 0,
        }
    }

    /// Requests that wait.
    pub(super) const fn len(&self) -> usize {
        self.len
    }

    /// IDs that are waited for.
    pub(super) const fn ids(&self) -> u64 {
        self.ids
    }

    pub(super) fn backlog(&self, key: u64) -> KeyBacklog {
        match self.keys.get(&key) {
            Some(own) => KeyBacklog { keys: self.keys.len(), own: own.len, own_ids: own.ids },
            None => KeyBacklog { keys: self.keys.len() + 1, own: 0, own_ids: 0 },
        }
    }

    /// Adds a request as the last one of its connection.
    pub(super) fn push(&mut self, flow: Flow, ids: u32, item: T) {
        self.queue(flow, ids).push_back(Entry { item, ids });
    }

    /// Puts a request back that could not have all: it stays the first one of its connection.
    pub(super) fn put_back(&mut self, Turn { flow, item, ids, .. }: Turn<T>) {
        self.queue(flow, ids).push_front(Entry { item, ids });
    }

    /// The queue of a connection, counted and in order for one more request.
    fn queue(&mut self, flow: Flow, ids: u32) -> &mut VecDeque<Entry<T>> {
        self.len += 1;
        self.ids += u64::from(ids);
        let (order, quantum) = (&mut self.order, self.quantum);
        let key = self.keys.entry(flow.key).or_insert_with(|| {
            order.push_back(flow.key);
            Key::new(quantum)
        });
        key.len += 1;
        key.ids += u64::from(ids);
        let order = &mut key.order;
        key.connections.entry(flow.connection).or_insert_with(|| {
            order.push_back(flow.connection);
            VecDeque::new()
        })
    }

    /// The request whose turn it is. It is out of the queue then.
    pub(super) fn next(&mut self) -> Option<Turn<T>> {
        let quantum = self.quantum;
        loop {
            let number = *self.order.front()?;
            let is_alone = self.order.len() == 1;
            let key = self.keys.get_mut(&number)?;
            if key.credit == 0 && !is_alone {
                key.credit = quantum;
                self.order.rotate_left(1);
                continue;
            }
            let (connection, Entry { item, ids }) = key.next()?;
            let most = match is_alone {
                false => key.credit,
                true if key.len > 0 => quantum,
                true => u32::MAX,
            };
            if key.len == 0 {
                self.keys.remove(&number);
                self.order.pop_front();
            }
            self.len -= 1;
            self.ids -= u64::from(ids);
            return Some(Turn { flow: Flow { key: number, connection }, item, ids, most });
        }
    }

    /// Notes that a key got so many IDs in its turn.
    pub(super) fn charge(&mut self, key: u64, ids: u32) {
        if let Some(key) = self.keys.get_mut(&key) {
            key.credit = key.credit.saturating_sub(ids);
        }
    }

    /// Takes everything out that a test says.
    pub(super) fn take_if(&mut self, mut test: impl FnMut(&T) -> bool) -> Vec<T> {
        let (mut taken, mut kept) = (Vec::new(), Self::new(self.quantum));
        let order = std::mem::take(&mut self.order);
        for number in order {
            let Some(mut key) = self.keys.remove(&number) else { continue };
            while let Some((connection, Entry { item, ids })) = key.next() {
                match test(&item) {
                    true => taken.push(item),
                    false => kept.push(Flow { key: number, connection }, ids, item),
                }
            }
        }
        *self = kept;
        taken
    }
}

impl<T> Key<T> {
    fn new(credit: u32) -> Self {
        Self { connections: HashMap::new(), order: VecDeque::new(), len: 0, ids: 0, credit }
    }

    /// The request of the connection whose turn it is; the connection goes to the end.
    fn next(&mut self) -> Option<(u64, Entry<T>)> {
        let connection = self.order.pop_front()?;
        let queue = self.connections.get_mut(&connection)?;
        let entry = queue.pop_front()?;
        if queue.is_empty() {
            self.connections.remove(&connection);
        } else {
            self.order.push_back(connection);
        }
        self.len -= 1;
        self.ids -= u64::from(entry.ids);
        Some((connection, entry))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn flow(key: u64, connection: u64) -> Flow {
        Flow { key, connection }
    }

    /// Serves everything, `most` IDs in a turn at the most, and gives who was served and how many.
    fn serve(fair: &mut FairQueue<&'static str>) -> Vec<(&'static str, u32)> {
        let mut served = Vec::new();
        while let Some(mut turn) = fair.next() {
            let count = turn.ids.min(turn.most);
            served.push((turn.item, count));
            turn.ids -= count;
            let key = turn.flow.key;
            if turn.ids > 0 {
                fair.put_back(turn);
            }
            fair.charge(key, count);
        }
        assert_eq!((fair.len(), fair.ids(), fair.keys.len(), fair.order.len()), (0, 0, 0, 0));
        served
    }

    #[test]
    fn keys_take_turns_however_much_each_wants() {
        let mut fair = FairQueue::new(4);
        for _ in 0..6 {
            fair.push(flow(1, 1), 2, "flood");
        }
        fair.push(flow(2, 2), 1, "light");
        let served = serve(&mut fair);
        let place = served.iter().position(|(who, _)| *who == "light").unwrap();
        assert_eq!(place, 2, "{served:?}");
        assert_eq!(served.len(), 7);
    }

    #[test]
    fn a_large_request_is_served_in_pieces_beside_others_and_whole_alone() {
        let mut fair = FairQueue::new(10);
        fair.push(flow(1, 1), 25, "large");
        fair.push(flow(2, 2), 10, "other");
        assert_eq!(serve(&mut fair), [("large", 10), ("other", 10), ("large", 15)]);
        fair.push(flow(1, 1), 25, "large");
        assert_eq!(serve(&mut fair), [("large", 25)]);
    }

    #[test]
    fn connections_of_one_key_take_turns() {
        let mut fair = FairQueue::new(100);
        for item in ["a1", "a2", "a3"] {
            fair.push(flow(7, 1), 1, item);
        }
        fair.push(flow(7, 2), 1, "b1");
        let order: Vec<_> = serve(&mut fair).into_iter().map(|(who, _)| who).collect();
        assert_eq!(order, ["a1", "b1", "a2", "a3"]);
    }

    #[test]
    fn what_is_taken_out_is_gone_and_the_rest_keeps_its_order() {
        let mut fair = FairQueue::new(100);
        for (connection, item) in [(1, "a1"), (2, "b1"), (1, "a2"), (3, "c1")] {
            fair.push(flow(7, connection), 2, item);
        }
        assert_eq!(fair.backlog(7), KeyBacklog { keys: 1, own: 4, own_ids: 8 });
        assert_eq!(fair.backlog(8), KeyBacklog { keys: 2, own: 0, own_ids: 0 });
        assert_eq!(fair.take_if(|item| *item == "b1"), ["b1"]);
        assert_eq!((fair.len(), fair.ids()), (3, 6));
        let order: Vec<_> = serve(&mut fair).into_iter().map(|(who, _)| who).collect();
        assert_eq!(order, ["a1", "c1", "a2"]);
    }
}
