//! Schedules that chance draws, of four threads with more calls than `loom_tests` can search, and
//! broken variants that the same check must catch.
//!
//! Run with `make shuttle`. A failure prints its schedule, which `shuttle::replay` repeats. Every
//! ordering is taken for the strongest here; what weaker ones allow is searched in `loom_tests`.

mod broken;
mod ledger;

use std::sync::Arc;
use std::vec::Vec;

use shuttle::rand::{Rng, thread_rng};
use shuttle::thread;

use self::ledger::{Ledger, Tally};
use super::*;
use crate::clock::ManualClock;

const RANDOM_SCHEDULES: usize = 100_000;
const PCT_SCHEDULES: usize = 20_000;
/// How many orders a fault may need for a PCT schedule to have a known chance of meeting it.
const PCT_DEPTH: usize = 4;

const ISSUERS: usize = 2;
const CALLS_OF_AN_ISSUER: usize = 6;
const BATCH_MAX: u32 = 3;

/// The tick that everything starts above, and the first horizon.
const FLOOR: u64 = 9;
const HORIZON: u64 = 10;
/// What a renewal allows, one after the other; the third comes late.
const RENEWALS: [u64; 5] = [11, 13, 12, 14, 17];
/// Two IDs a tick: every thread meets ends of ticks and of horizons.
const SEQUENCE_BITS: u32 = 1;

/// What the check drives: the generator, and issuing that looks right and is not.
trait Issuing: Send + Sync + 'static {
    fn start() -> Self;

    /// Up to `n` tickets; none if that cannot be now.
    fn issue(&self, n: u32) -> Vec<u64>;

    fn raise(&self, horizon: u64);

    /// The last tick.
    fn close(&self) -> u64;

    /// What a renewal does not wait for: time goes on, or back.
    fn let_time_change(&self) {}
}

impl Issuing for Generator<ManualClock> {
    fn start() -> Self {
        let rollbacks = [Rollback::Wait, Rollback::Refuse, Rollback::Ride];
        let options = Options {
            floor: Some(FLOOR),
            horizon: Some(HORIZON),
            max_ahead: Duration::from_millis(4),
            rollback: rollbacks[thread_rng().gen_range(0..rollbacks.len())],
            least_lifetime: Duration::ZERO,
            ..Options::default()
        };
        let layout = layout();
        let clock = ManualClock::new(&layout, FLOOR + 1);
        Self::new(&layout, 1, clock, options).expect("the options fit the layout")
    }

    fn issue(&self, n: u32) -> Vec<u64> {
        let ids: Vec<Id> = match thread_rng().gen_range(0..3) {
            0 => self.try_next().into_iter().collect(),
            1 => self.try_batch(n).iter().flat_map(Batch::iter).collect(),
            _ => self.try_up_to(n).iter().flat_map(Batch::iter).collect(),
        };
        ids.into_iter().map(ticket).collect()
    }

    fn raise(&self, horizon: u64) {
        self.raise_horizon(horizon);
        assert!(self.horizon() >= horizon, "the horizon was lowered");
    }

    fn close(&self) -> u64 {
        let closed = self.close().expect("closed once");
        assert_eq!(self.close(), None);
        assert_eq!(self.try_next(), Err(NotReady::Closed));
        closed.last_tick
    }

    fn let_time_change(&self) {
        if thread_rng().gen_range(0..4) == 0 {
            self.clock.step_to(FLOOR);
        } else {
            self.clock.advance(1);
        }
    }
}

fn layout() -> Layout {
    Layout::new(&[("time", 20), ("worker", 2), ("sequence", 1)], 0, 1)
        .expect("a small layout works")
}

fn ticket(id: Id) -> u64 {
    let parts = id.parts(&layout()).expect("issued by this layout");
    (parts.tick << SEQUENCE_BITS) | parts.sequence
}

/// One life: threads issue and one renews, while this one issues too and then closes.
fn live<I: Issuing>(tally: &Tally) {
    let ledger = Arc::new(Ledger::new());
    let subject = Arc::new(I::start());
    let mut threads: Vec<_> = (0..ISSUERS)
        .map(|_| {
            let (subject, ledger) = (Arc::clone(&subject), Arc::clone(&ledger));
            thread::spawn(move || issue(&*subject, &ledger, CALLS_OF_AN_ISSUER))
        })
        .collect();
    threads.push({
        let (subject, ledger) = (Arc::clone(&subject), Arc::clone(&ledger));
        thread::spawn(move || renew(&*subject, &ledger))
    });
    issue(&*subject, &ledger, thread_rng().gen_range(0..CALLS_OF_AN_ISSUER));
    ledger.close(subject.close());
    for thread in threads {
        thread.join().expect("no thread panics");
    }
    tally.add(&ledger);
}

fn issue(subject: &impl Issuing, ledger: &Ledger, calls: usize) {
    for _ in 0..calls {
        let n = thread_rng().gen_range(1..=BATCH_MAX);
        let before = ledger.before_a_call();
        let tickets = subject.issue(n);
        ledger.enter(before, &tickets);
    }
}

fn renew(subject: &impl Issuing, ledger: &Ledger) {
    for horizon in RENEWALS {
        ledger.raise(horizon);
        subject.raise(horizon);
        subject.let_time_change();
    }
}

fn draw_random<I: Issuing>() -> Arc<Tally> {
    let tally = Arc::new(Tally::default());
    let of_runs = Arc::clone(&tally);
    shuttle::check_random(move || live::<I>(&of_runs), RANDOM_SCHEDULES);
    tally
}

fn draw_pct<I: Issuing>() -> Arc<Tally> {
    let tally = Arc::new(Tally::default());
    let of_runs = Arc::clone(&tally);
    shuttle::check_pct(move || live::<I>(&of_runs), PCT_SCHEDULES, PCT_DEPTH);
    tally
}

#[test]
fn random_schedules_repeat_nothing_keep_the_order_and_end_with_the_close() {
    draw_random::<Generator<ManualClock>>().assert_worth(RANDOM_SCHEDULES);
}

#[test]
fn pct_schedules_repeat_nothing_keep_the_order_and_end_with_the_close() {
    draw_pct::<Generator<ManualClock>>().assert_worth(PCT_SCHEDULES);
}
