//! The orders to a proxy, shared by all its threads.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::waiting::now;

/// The state under a lock, and a bell that rings at each change.
#[derive(Debug)]
pub(super) struct Switchboard {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) mode: Mode,
    pub(super) target: SocketAddr,
    pub(super) delay_up: Duration,
    pub(super) delay_down: Duration,
    pub(super) accepted: u64,
    pub(super) bytes_up: u64,
    pub(super) bytes_down: u64,
    pub(super) bytes_answered: u64,
    pub(super) bytes_dropped: u64,
    /// How many bytes of replies each connection may still carry, as far as that is limited.
    cut_after: Option<u64>,
    pub(super) open: BTreeMap<Key, Open>,
    next_key: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    Forward,
    Cut,
    BlackHole,
    HoldReplies,
    DropReplies,
    /// The proxy was dropped.
    Ended,
}

/// Names an open connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key(u64);

/// The sockets of an open connection, kept to close them.
#[derive(Debug)]
pub(super) struct Open {
    client: TcpStream,
    server: Option<TcpStream>,
    /// Replies were thrown away.
    has_hole: bool,
    /// Bytes of replies that may still pass.
    left: Option<u64>,
}

/// Which way bytes go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    /// To the target.
    Up,
    /// To the client.
    Down,
}

/// What to do with bytes whose time has come.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Action {
    Forward,
    Drop,
    /// The connection is closed.
    Close,
}

impl Switchboard {
    pub(super) fn new(target: SocketAddr) -> Self {
        let state = State {
            mode: Mode::Forward,
            target,
            delay_up: Duration::ZERO,
            delay_down: Duration::ZERO,
            accepted: 0,
            bytes_up: 0,
            bytes_down: 0,
            bytes_answered: 0,
            bytes_dropped: 0,
            cut_after: None,
            open: BTreeMap::new(),
            next_key: 0,
        };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }

    pub(super) fn read<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        look(&self.lock())
    }

    pub(super) fn update<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let result = change(&mut self.lock());
        self.changed.notify_all();
        result
    }

    pub(super) fn set_mode(&self, mode: Mode) {
        self.update(|state| state.mode = mode);
    }

    pub(super) fn ended(&self) -> bool {
        self.read(|state| state.mode == Mode::Ended)
    }

    pub(super) fn heal(&self) {
        self.update(|state| {
            state.mode = Mode::Forward;
            state.delay_up = Duration::ZERO;
            state.delay_down = Duration::ZERO;
            state.limit(None);
            state.close(|open| open.has_hole);
        });
    }

    pub(super) fn close_all(&self) {
        self.update(|state| state.close(|_| true));
    }

    pub(super) fn close_all_with(&self, bytes: &[u8]) {
        self.update(|state| {
            for open in state.open.values_mut() {
                // A client that is gone is told nothing.
                let _ = open.client.write_all(bytes);
            }
            state.close(|_| true);
        });
    }

    /// Enters a new connection, unless the mode closes it at once.
    pub(super) fn enter(&self, client: TcpStream) -> Option<Key> {
        self.update(|state| {
            if matches!(state.mode, Mode::Cut | Mode::Ended) {
                return None;
            }
            let key = Key(state.next_key);
            state.next_key += 1;
            let left = state.cut_after;
            state.open.insert(key, Open { client, server: None, has_hole: false, left });
            Some(key)
        })
    }

    /// Adds the target's side. `false` if the connection was closed in between.
    pub(super) fn join(&self, key: Key, server: TcpStream) -> bool {
        self.update(|state| {
            let open = state.open.get_mut(&key);
            open.map(|open| open.server = Some(server)).is_some()
        })
    }

    pub(super) fn leave(&self, key: Key) {
        self.update(|state| state.close_if(key));
    }

    /// Limits what each connection may still carry of replies.
    pub(super) fn cut_after(&self, bytes: u64) {
        self.update(|state| state.limit(Some(bytes)));
    }

    /// How many of so many bytes may pass; if not all, the connection is to be closed after them.
    pub(super) fn allowed(&self, key: Key, direction: Direction, length: usize) -> usize {
        if direction == Direction::Up {
            return length;
        }
        self.update(|state| {
            let Some(left) = state.open.get_mut(&key).and_then(|open| open.left.as_mut()) else {
                return length;
            };
            let allowed = length.min(usize::try_from(*left).unwrap_or(usize::MAX));
            *left -= allowed as u64;
            allowed
        })
    }

    /// Waits until bytes that came at `arrival` may go on, and says where to.
    pub(super) fn judge(&self, key: Key, direction: Direction, arrival: Instant) -> Action {
        let mut state = self.lock();
        loop {
            if !state.open.contains_key(&key) {
                return Action::Close;
            }
            if !state.holds(direction) {
                let due = arrival + state.delay(direction);
                let rest = due.saturating_duration_since(now());
                if rest.is_zero() {
                    return state.release(key, direction);
                }
                let waited = self.changed.wait_timeout(state, rest);
                state = waited.unwrap_or_else(PoisonError::into_inner).0;
            } else {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
        }
    }

    pub(super) fn wait(
        &self,
        what: &str,
        limit: Duration,
        mut enough: impl FnMut(&State) -> bool,
    ) -> io::Result<()> {
        let waited = self.changed.wait_timeout_while(self.lock(), limit, |state| !enough(state));
        let (_state, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
        if timeout.timed_out() {
            let message = format!("a proxy waited {limit:?} in vain for more {what}");
            return Err(io::Error::new(io::ErrorKind::TimedOut, message));
        }
        Ok(())
    }

    /// No change is made in two steps, so that a panic elsewhere leaves the state whole.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn holds(&self, direction: Direction) -> bool {
        match self.mode {
            Mode::BlackHole => true,
            Mode::HoldReplies => direction == Direction::Down,
            Mode::Forward | Mode::Cut | Mode::DropReplies | Mode::Ended => false,
        }
    }

    fn delay(&self, direction: Direction) -> Duration {
        match direction {
            Direction::Up => self.delay_up,
            Direction::Down => self.delay_down,
        }
    }

    fn release(&mut self, key: Key, direction: Direction) -> Action {
        if self.mode == Mode::DropReplies && direction == Direction::Down {
            if let Some(open) = self.open.get_mut(&key) {
                open.has_hole = true;
            }
            return Action::Drop;
        }
        Action::Forward
    }

    fn limit(&mut self, bytes: Option<u64>) {
        self.cut_after = bytes;
        self.open.values_mut().for_each(|open| open.left = bytes);
    }

    fn close_if(&mut self, key: Key) {
        if let Some(open) = self.open.remove(&key) {
            open.shut();
        }
    }

    fn close(&mut self, which: impl Fn(&Open) -> bool) {
        for (_, open) in self.open.extract_if(.., |_, open| which(open)) {
            open.shut();
        }
    }
}

impl Open {
    /// Ends the threads that read from the sockets. A socket that is already closed is fine.
    fn shut(&self) {
        let _ = self.client.shutdown(Shutdown::Both);
        if let Some(server) = &self.server {
            let _ = server.shutdown(Shutdown::Both);
        }
    }
}
