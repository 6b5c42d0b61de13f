//! The IDs that were issued in one schedule, and every rule about them.
//!
//! Its lock is the standard library's and is never held at a place where threads switch, so keeping
//! the ledger changes no schedule.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};

use frazil_id::{Id, NotReady};

use super::{ActiveGenerator, Still, tick};

/// What one slot has issued so far, and under which tenures.
#[derive(Default)]
pub(super) struct Ledger(Mutex<Page>);

#[derive(Default)]
struct Page {
    ids: BTreeSet<Id>,
    /// By token.
    tenures: BTreeMap<u64, Tenure>,
    phase: Phase,
    /// Grows with each change of the phase.
    phases: usize,
    refused_after_end: bool,
}

struct Tenure {
    floor: u64,
    /// The highest horizon that was asked for.
    horizon: u64,
    highest: u64,
    /// The last tick, once the close has returned it.
    closed: Option<u64>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Phase {
    /// Nobody may be told that there is no generator.
    #[default]
    Open,
    /// A close is under way, or the next tenure begins: callers may get either answer.
    Changing,
    /// Nothing may be issued.
    Ended,
}

/// What was known when a call began.
pub(super) struct Before {
    highest: Option<Id>,
    phase: Phase,
    phases: usize,
}

/// What a call gave: IDs and the token of their tenure.
type Answer = Option<Result<(u64, Vec<Id>), NotReady>>;

impl Ledger {
    pub(super) fn before_a_call(&self) -> Before {
        let page = self.page();
        Before { highest: page.ids.last().copied(), phase: page.phase, phases: page.phases }
    }

    /// Enters what a call gave.
    pub(super) fn enter(&self, before: Before, answer: Answer) {
        let mut page = self.page();
        let throughout = |phase| before.phase == phase && before.phases == page.phases;
        let (was_open, was_ended) = (throughout(Phase::Open), throughout(Phase::Ended));
        assert!(!was_open || answer.is_some(), "a replacement failed somebody");
        page.refused_after_end |= was_ended;
        let Some(Ok((token, ids))) = answer else { return };
        assert!(!was_ended, "{ids:?} were issued after the close");
        assert!(ids.is_sorted_by(|a, b| a < b), "{ids:?} are not in order");
        for id in ids {
            assert!(page.ids.insert(id), "{id:?} was issued twice");
            assert!(before.highest.is_none_or(|it| id > it), "{id:?} is not above one before it");
            page.tenures.get_mut(&token).expect("a tenure that was granted").enter(tick(id));
        }
    }

    /// Notes a tenure whose generator is about to be put in place.
    pub(super) fn grant(&self, active: ActiveGenerator<Still>) -> ActiveGenerator<Still> {
        let (floor, horizon) = (active.generator.floor(), active.generator.horizon());
        let mut page = self.page();
        if page.phase == Phase::Ended {
            page.turn(Phase::Changing);
        }
        page.tenures.insert(active.token, Tenure { floor, horizon, highest: floor, closed: None });
        active
    }

    /// Notes a horizon that is about to be allowed.
    pub(super) fn raise(&self, horizon: u64) {
        let mut page = self.page();
        let mut current = page.tenures.last_entry().expect("a tenure that is renewed");
        let current = current.get_mut();
        current.horizon = current.horizon.max(horizon);
    }

    /// Notes what a close of a tenure has returned, if there was one.
    pub(super) fn close(&self, token: u64, last_tick: u64) {
        let mut page = self.page();
        let Some(tenure) = page.tenures.get_mut(&token) else { return };
        let highest = tenure.highest;
        assert!(highest <= last_tick, "{highest} is above the last tick {last_tick}");
        let first = *tenure.closed.get_or_insert(last_tick);
        assert_eq!(first, last_tick, "a tenure that ended had another last tick");
    }

    /// Notes that issuing is about to be ended.
    pub(super) fn ending(&self) {
        self.page().turn(Phase::Changing);
    }

    /// Notes that issuing has ended.
    pub(super) fn ended(&self) {
        self.page().turn(Phase::Ended);
    }

    /// Notes that callers wait for successors again.
    pub(super) fn reopened(&self) {
        self.page().turn(Phase::Open);
    }

    fn page(&self) -> MutexGuard<'_, Page> {
        self.0.lock().expect("a broken rule ends the schedule")
    }
}

impl Page {
    fn turn(&mut self, phase: Phase) {
        self.phase = phase;
        self.phases += 1;
    }
}

impl Tenure {
    fn enter(&mut self, tick: u64) {
        self.highest = self.highest.max(tick);
        assert!(tick > self.floor, "{tick} is not above the floor {}", self.floor);
        assert!(tick <= self.horizon, "{tick} is past the horizon {}", self.horizon);
        let in_time = self.closed.is_none_or(|last| tick <= last);
        assert!(in_time, "{tick} is above the last tick {:?}", self.closed);
    }
}

/// What the schedules of a test have met.
#[derive(Default)]
pub(super) struct Tally {
    schedules: AtomicUsize,
    /// Of those: IDs of two tenures or more.
    replaced_amid: AtomicUsize,
    /// Of those: IDs were issued, and calls came after an end.
    ended_amid: AtomicUsize,
}

impl Tally {
    pub(super) fn add(&self, ledger: &Ledger) {
        let page = ledger.page();
        let used = page.tenures.values().filter(|tenure| tenure.highest > tenure.floor).count();
        // Relaxed, here and below: numbers that are read when all is over.
        self.schedules.fetch_add(1, Ordering::Relaxed);
        self.replaced_amid.fetch_add(usize::from(used > 1), Ordering::Relaxed);
        let ended = used > 0 && page.refused_after_end;
        self.ended_amid.fetch_add(usize::from(ended), Ordering::Relaxed);
    }

    /// A test whose schedules meet nothing shows nothing.
    pub(super) fn assert_worth(&self, schedules: usize) {
        assert_eq!(self.schedules.load(Ordering::Relaxed), schedules);
        let replaced = self.replaced_amid.load(Ordering::Relaxed);
        assert!(replaced > schedules / 10, "replaced amid issuing in {replaced} of {schedules}");
        let ended = self.ended_amid.load(Ordering::Relaxed);
        assert!(ended > schedules / 10, "ended amid issuing in {ended} of {schedules}");
    }
}
