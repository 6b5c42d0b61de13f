//! What moves in a client. It belongs to one process; a child makes another one.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use frazil_fork::Birthmark;
use frazil_id::Id;

use crate::budget::Budget;
use crate::builder::Options;
use crate::clock::nanos;
use crate::desk::Desk;
use crate::error::Error;
use crate::host::Host;
use crate::observer::{Event, Observer};
use crate::pool::Pool;
use crate::shell::Shell;
use crate::sizing::Sizing;
use crate::stats::{Counters, Stats};

/// The pool, those who wait, and the servers as this process knows them.
pub(crate) struct State {
    pub(crate) mark: Birthmark,
    pub(crate) pool: Pool,
    desk: Mutex<Desk>,
    pub(crate) hosts: Vec<Host>,
    pub(crate) budget: Budget,
    pub(crate) counters: Counters,
    observer: Option<Arc<dyn Observer>>,
}

impl State {
    pub(crate) fn new(options: &Options) -> Self {
        let max_age_ns = nanos(options.max_age);
        let sizing = options.prefetch.map(|bounds| Sizing::new(bounds, max_age_ns));
        Self {
            mark: Birthmark::new(),
            pool: Pool::new(max_age_ns, options.threads),
            desk: Mutex::new(Desk::new(sizing)),
            hosts: options.ways.iter().cloned().map(Host::new).collect(),
            budget: Budget::new(options.ways.len()),
            counters: Counters::default(),
            observer: options.observer.clone(),
        }
    }

    /// Fetches ahead, unless that is being done.
    pub(crate) fn refill(self: &Arc<Self>, shell: &Arc<Shell>) {
        if self.desk().begin_refill() {
            crate::fetch::start(shell, self);
        }
    }

    /// Puts Ids where they are wanted: those who wait first, then the pool.
    pub(crate) fn settle(&self, ids: Vec<Id>, asked_ns: u64) {
        let mut desk = self.desk();
        let rest = desk.serve(ids);
        let count = rest.len();
        if count == 0 {
            return;
        }
        if desk.is_closed() || !desk.fetches_ahead() {
            self.pool.discard(count as u64);
            drop(desk);
            return self.tell(&Event::Discarded { ids: count as u64 });
        }
        let before = self.pool.discarded();
        // Under the lock, so that a client that is closed stays empty.
        self.pool.put(rest, asked_ns);
        drop(desk);
        self.counters.refills.one();
        self.tell(&Event::Refilled { ids: count });
        let dropped = self.pool.discarded() - before;
        if dropped > 0 {
            self.tell(&Event::Discarded { ids: dropped });
        }
    }

    /// Ends everything that waits here, and all that was fetched.
    pub(crate) fn close(&self) {
        let mut desk = self.desk();
        desk.close();
        self.pool.clear();
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.desk().is_closed()
    }

    /// Errors if the client was closed.
    pub(crate) fn check_open(&self) -> Result<(), Error> {
        if self.is_closed() { Err(Error::Closed) } else { Ok(()) }
    }

    pub(crate) fn desk(&self) -> MutexGuard<'_, Desk> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn tell(&self, event: &Event<'_>) {
        if let Some(observer) = &self.observer {
            observer.event(event);
        }
    }

    pub(crate) fn stats(&self) -> Stats {
        Stats {
            hits: self.pool.handed_out(),
            discarded: self.pool.discarded(),
            pooled: self.pool.len(),
            ..self.counters.snapshot()
        }
    }
}
