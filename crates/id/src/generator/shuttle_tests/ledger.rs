//! The IDs that were issued in one schedule, and every rule about them.
//!
//! Its lock is the standard library's and is never held at a place where threads switch, so keeping
//! the ledger changes no schedule.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};

use super::{FLOOR, HORIZON, SEQUENCE_BITS};

/// What one generator has issued so far.
pub(super) struct Ledger(Mutex<Page>);

struct Page {
    tickets: BTreeSet<u64>,
    /// The highest horizon that was asked for.
    horizon: u64,
    /// The last tick, once the close has returned it.
    closed: Option<u64>,
    refused_after_close: bool,
}

/// What was known when a call began.
#[derive(Clone, Copy)]
pub(super) struct Before {
    highest: u64,
    closed: bool,
}

impl Ledger {
    pub(super) fn new() -> Self {
        Self(Mutex::new(Page {
            tickets: BTreeSet::new(),
            horizon: HORIZON,
            closed: None,
            refused_after_close: false,
        }))
    }

    pub(super) fn before_a_call(&self) -> Before {
        let page = self.page();
        Before { highest: page.highest(), closed: page.closed.is_some() }
    }

    /// Enters what a call gave.
    pub(super) fn enter(&self, before: Before, tickets: &[u64]) {
        let mut page = self.page();
        assert!(tickets.is_sorted_by(|a, b| a < b), "{tickets:?} are not in order");
        assert!(!before.closed || tickets.is_empty(), "{tickets:?} were issued after the close");
        page.refused_after_close |= before.closed;
        for &ticket in tickets {
            let tick = ticket >> SEQUENCE_BITS;
            assert!(page.tickets.insert(ticket), "{ticket} was issued twice");
            assert!(ticket > before.highest, "{ticket} is not above {}", before.highest);
            assert!(tick <= page.horizon, "{tick} is past the horizon {}", page.horizon);
            let in_time = page.closed.is_none_or(|last| tick <= last);
            assert!(in_time, "{tick} is above the last tick {:?}", page.closed);
        }
    }

    /// Notes a horizon that is about to be allowed.
    pub(super) fn raise(&self, horizon: u64) {
        let mut page = self.page();
        page.horizon = page.horizon.max(horizon);
    }

    /// Notes that a close has returned its last tick.
    pub(super) fn close(&self, last_tick: u64) {
        let mut page = self.page();
        let highest = page.highest() >> SEQUENCE_BITS;
        assert!(highest <= last_tick, "{highest} is above the last tick {last_tick}");
        assert!(last_tick <= page.horizon, "the last tick {last_tick} is past the horizon");
        page.closed = Some(last_tick);
    }

    fn page(&self) -> MutexGuard<'_, Page> {
        self.0.lock().expect("a broken rule ends the schedule")
    }
}

impl Page {
    /// The highest ticket so far, or the last one of the floor.
    fn highest(&self) -> u64 {
        self.tickets.last().copied().unwrap_or(((FLOOR + 1) << SEQUENCE_BITS) - 1)
    }
}

/// What the schedules of a test have met.
#[derive(Default)]
pub(super) struct Tally {
    schedules: AtomicUsize,
    /// Of those: IDs were issued before the close, and calls came after it.
    closed_amid: AtomicUsize,
}

impl Tally {
    pub(super) fn add(&self, ledger: &Ledger) {
        let page = ledger.page();
        let amid = !page.tickets.is_empty() && page.refused_after_close;
        // Relaxed, here and below: numbers that are read when all is over.
        self.schedules.fetch_add(1, Ordering::Relaxed);
        self.closed_amid.fetch_add(usize::from(amid), Ordering::Relaxed);
    }

    /// A test whose schedules meet nothing shows nothing.
    pub(super) fn assert_worth(&self, schedules: usize) {
        assert_eq!(self.schedules.load(Ordering::Relaxed), schedules);
        let amid = self.closed_amid.load(Ordering::Relaxed);
        assert!(amid > schedules / 10, "closed amid issuing in {amid} of {schedules} schedules");
    }
}
