//! Watches: what is told of a node and of all below it.

use std::collections::HashMap;

use tokio::sync::mpsc;

use crate::error::Error;
use crate::jute::Decoder;
use crate::session::State;

/// So many events of a watch may wait to be taken. Whoever is slower has missed something.
const EVENTS_MAX: usize = 1024;

/// Something that a watch tells.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// The node at this path was created.
    Created(String),
    /// The node at this path was deleted.
    Deleted(String),
    /// The data of the node at this path was written.
    Changed(String),
    /// The state of the session is another. What happened while it was disconnected is not told.
    State(State),
}

/// A watch of a node and of all below it, which need not exist. It goes on over connections, until
/// it is dropped.
#[derive(Debug)]
pub struct Watch {
    events: mpsc::Receiver<Event>,
}

impl Watch {
    /// The next event. `None`: the watch has ended, with the session or because events were taken too
    /// slowly.
    pub async fn next(&mut self) -> Option<Event> {
        self.events.recv().await
    }

    pub(crate) fn channel() -> (mpsc::Sender<Event>, Self) {
        let (sender, events) = mpsc::channel(EVENTS_MAX);
        (sender, Self { events })
    }
}

/// The watches of a client.
#[derive(Debug, Default)]
pub(crate) struct Watches {
    of_path: HashMap<String, Vec<Watcher>>,
    last: u64,
}

/// Which watch it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WatchId {
    path: String,
    number: u64,
}

#[derive(Debug)]
struct Watcher {
    number: u64,
    events: mpsc::Sender<Event>,
    /// Whether the server has answered that it is set. Events may come before.
    is_set: bool,
}

impl Watches {
    /// A watch that is about to be asked for.
    pub(crate) fn add(&mut self, path: String, events: mpsc::Sender<Event>) -> WatchId {
        self.last += 1;
        let watcher = Watcher { number: self.last, events, is_set: false };
        self.of_path.entry(path.clone()).or_default().push(watcher);
        WatchId { path, number: self.last }
    }

    pub(crate) fn confirm(&mut self, id: &WatchId) {
        let watchers = self.of_path.get_mut(&id.path).into_iter().flatten();
        watchers
            .filter(|watcher| watcher.number == id.number)
            .for_each(|found| found.is_set = true);
    }

    /// Forgets a watch that was refused. It may have been the last of its path: see
    /// [`unwatched`](Self::unwatched).
    pub(crate) fn remove(&mut self, id: &WatchId) {
        if let Some(watchers) = self.of_path.get_mut(&id.path) {
            watchers.retain(|watcher| watcher.number != id.number);
        }
    }

    /// Forgets those that were asked for on a connection that is lost.
    pub(crate) fn remove_unset(&mut self) {
        self.of_path.values_mut().for_each(|watchers| watchers.retain(|watcher| watcher.is_set));
        self.unwatched();
    }

    /// Forgets the paths that nobody watches any more, and gives them.
    pub(crate) fn unwatched(&mut self) -> Vec<String> {
        let unwatched = |_: &String, watchers: &mut Vec<Watcher>| {
            watchers.retain(|watcher| !watcher.events.is_closed());
            watchers.is_empty()
        };
        self.of_path.extract_if(unwatched).map(|(path, _)| path).collect()
    }

    pub(crate) fn paths(&self) -> impl Iterator<Item = &str> {
        self.of_path.keys().map(String::as_str)
    }

    /// Tells an event to the watches of the path and of those above. `true`: of one of them, nobody
    /// takes events any more.
    pub(crate) fn tell(&mut self, event: &Event) -> bool {
        let (Event::Created(path) | Event::Deleted(path) | Event::Changed(path)) = event else {
            return false;
        };
        let mut has_ended = false;
        for path in ancestors(path) {
            if let Some(watchers) = self.of_path.get_mut(path) {
                watchers.retain(|watcher| watcher.events.try_send(event.clone()).is_ok());
                has_ended |= watchers.is_empty();
            }
        }
        has_ended
    }

    /// Tells the state to all watches. A final one ends them.
    pub(crate) fn tell_state(&mut self, state: State) {
        for watchers in self.of_path.values_mut() {
            watchers.retain(|watcher| watcher.events.try_send(Event::State(state)).is_ok());
        }
        if state.is_final() {
            self.of_path.clear();
        }
    }
}

/// A path and those above it.
fn ancestors(path: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(path), |path| match path.rfind('/')? {
        0 if path.len() > 1 => Some("/"),
        0 => None,
        slash => Some(&path[..slash]),
    })
}

impl Event {
    /// The event of a message; `None` of those that no watch here is told.
    pub(crate) fn decode(message: &mut Decoder<'_>) -> Result<Option<Self>, Error> {
        let (kind, _, path) = (message.int()?, message.int()?, message.text()?);
        Ok(match kind {
            1 => Some(Self::Created(path)),
            2 => Some(Self::Deleted(path)),
            3 => Some(Self::Changed(path)),
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn created(path: &str) -> Event {
        Event::Created(path.into())
    }

    fn taken(watch: &mut Watch) -> Vec<Event> {
        std::iter::from_fn(|| watch.events.try_recv().ok()).collect()
    }

    #[test]
    fn a_watch_is_told_of_its_node_and_of_those_below() {
        let mut watches = Watches::default();
        let (sender, mut deep) = Watch::channel();
        watches.add("/a/b".into(), sender);
        let (sender, mut root) = Watch::channel();
        watches.add("/".into(), sender);
        for path in ["/a", "/a/b", "/a/bc", "/a/b/c/d", "/", "", "no slash"] {
            assert!(!watches.tell(&created(path)));
        }
        assert_eq!(taken(&mut deep), [created("/a/b"), created("/a/b/c/d")]);
        assert_eq!(taken(&mut root).len(), 5);
    }

    #[test]
    fn a_path_is_unwatched_when_its_last_watch_is_dropped() {
        let mut watches = Watches::default();
        let [(first, one), (second, two)] = [Watch::channel(), Watch::channel()];
        watches.add("/a".into(), first);
        watches.add("/a".into(), second);
        drop(one);
        assert!(watches.unwatched().is_empty());
        drop(two);
        assert!(watches.tell(&created("/a")), "it is noticed");
        assert_eq!(watches.unwatched(), ["/a"]);
        assert_eq!(watches.paths().count(), 0);
    }

    #[test]
    fn what_the_server_did_not_confirm_is_forgotten_with_the_connection() {
        let mut watches = Watches::default();
        let [(first, _one), (second, _two)] = [Watch::channel(), Watch::channel()];
        let id = watches.add("/set".into(), first);
        watches.add("/asked".into(), second);
        watches.confirm(&id);
        watches.remove_unset();
        assert_eq!(watches.paths().collect::<Vec<_>>(), ["/set"]);
    }

    #[tokio::test]
    async fn whoever_is_too_slow_sees_the_end_after_what_was_in_time() {
        let mut watches = Watches::default();
        let (sender, mut slow) = Watch::channel();
        watches.add("/a".into(), sender);
        for _ in 0..EVENTS_MAX {
            assert!(!watches.tell(&created("/a")));
        }
        assert!(watches.tell(&created("/a")));
        for _ in 0..EVENTS_MAX {
            assert!(slow.next().await.is_some());
        }
        assert_eq!(slow.next().await, None);
    }
}
