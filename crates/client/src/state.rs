//! The changing state of a client. It belongs to one process; a child makes another one.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use frazil_fork::Birthmark;
use frazil_id::Id;

use crate::budget::Budget;
use crate::builder::Options;
use crate::clock::nanos;
use crate::discovery::Schedule;
use crate::error::Error;
use crate::hosts::Hosts;
use crate::inner::Inner;
use crate::observer::{Event, Observer};
use crate::pool::{Pool, PoolNumber};
use crate::sizing::Sizing;
use crate::stats::{Counters, Stats};
use crate::waiters::Waiters;

/// The pool, those who wait, and the servers as this process knows them.
pub(crate) struct State {
    pub(crate) mark: Arc<Birthmark>,
    pub(crate) pool: Pool,
    waiters: Mutex<Waiters>,
    pub(crate) hosts: Hosts,
    pub(crate) discovery: Schedule,
    pub(crate) budget: Budget,
    pub(crate) counters: Counters,
    observer: Option<Arc<dyn Observer>>,
    /// Why the last attempt failed, while none has succeeded since.
    last_failure: Mutex<Option<Arc<Error>>>,
}

impl State {
    pub(crate) fn new(options: &Options, pool: PoolNumber) -> Self {
        let max_age_ns = nanos(options.max_age);
        let sizing = options.prefetch.map(|bounds| Sizing::new(bounds, max_age_ns));
        let mark = Arc::new(Birthmark::new());
        Self {
            pool: Pool::new(pool, mark.clone(), max_age_ns, options.threads),
            mark,
            waiters: Mutex::new(Waiters::new(sizing)),
            hosts: Hosts::new(options.targets.iter().cloned()),
            discovery: Schedule::default(),
            budget: Budget::new(options.targets.len()),
            counters: Counters::default(),
            observer: options.observer.clone(),
            last_failure: Mutex::new(None),
        }
    }

    /// Fetches ahead, unless that is being done.
    pub(crate) fn refill(self: &Arc<Self>, inner: &Arc<Inner>) {
        if self.waiters().begin_refill() {
            crate::fetch::start(inner, self);
        }
    }

    /// Puts IDs where they are wanted: those who wait first, then the pool.
    pub(crate) fn settle(&self, ids: Vec<Id>, asked_ns: u64) {
        let mut waiters = self.waiters();
        let rest = waiters.serve(ids);
        let count = rest.len();
        if count == 0 {
            return;
        }
        if waiters.is_closed() || !waiters.fetches_ahead() {
            self.pool.discard(count as u64);
            drop(waiters);
            return self.note_dropped();
        }
        // Under the lock, so that a client that is closed stays empty.
        self.pool.put(rest, asked_ns);
        drop(waiters);
        self.note(&Event::Refilled { ids: count });
        self.note_dropped();
    }

    /// Ends everything that waits here, and all that was fetched.
    pub(crate) fn close(&self) {
        let mut waiters = self.waiters();
        waiters.close();
        self.pool.clear();
        drop(waiters);
        self.note_dropped();
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.waiters().is_closed()
    }

    /// Errors if the client was closed.
    pub(crate) fn check_open(&self) -> Result<(), Error> {
        if self.is_closed() { Err(Error::Closed) } else { Ok(()) }
    }

    pub(crate) fn waiters(&self) -> MutexGuard<'_, Waiters> {
        self.waiters.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts what happened, and tells the observer of it: the one place that does either, so that
    /// both know the same.
    pub(crate) fn note(&self, event: &Event<'_>) {
        self.counters.count(event);
        match event {
            Event::Answered { .. } => *self.failure() = None,
            Event::Failed { error, .. } => *self.failure() = Some(Arc::new((*error).clone())),
            _ => {}
        }
        if let Some(observer) = &self.observer {
            observer.event(event);
        }
    }

    /// Notes what the pool has dropped. Not to be called under a lock.
    pub(crate) fn note_dropped(&self) {
        let ids = self.pool.take_dropped();
        if ids > 0 {
            self.note(&Event::Discarded { ids });
        }
    }

    /// Why the last attempt failed, if none has succeeded since.
    pub(crate) fn last_failure(&self) -> Option<Arc<Error>> {
        self.failure().clone()
    }

    fn failure(&self) -> MutexGuard<'_, Option<Arc<Error>>> {
        self.last_failure.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn stats(&self) -> Stats {
        Stats {
            hits: self.pool.handed_out(),
            pooled: self.pool.len(),
            endpoints: self.hosts.all().len() as u64,
            ..self.counters.snapshot()
        }
    }
}
