//! Schedules that chance draws, of issuing beside renewals, replacements, releases and a shutdown,
//! with more threads and calls than `loom_tests` can search; and broken variants that the same check
//! must catch.
//!
//! Run with `make shuttle`. A failure prints its schedule, which `shuttle::replay` repeats. Every
//! ordering is taken for the strongest here; what weaker ones allow is searched in `loom_tests`.

mod broken;
mod ledger;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use frazil_id::{Batch, Clock, Generator, Id, Layout, Moment, NotReady, Options, Reading};
use shuttle::rand::{Rng, thread_rng};
use shuttle::thread;

use self::ledger::{Ledger, Tally};
use super::{ActiveGenerator, GeneratorSlot};

const RANDOM_SCHEDULES: usize = 100_000;
const PCT_SCHEDULES: usize = 20_000;
/// How many orders a fault may need for a PCT schedule to have a known chance of meeting it.
const PCT_DEPTH: usize = 4;

const ISSUERS: usize = 3;
const CALLS_OF_AN_ISSUER: usize = 10;
const BATCH_MAX: u32 = 3;

/// Where time stands, and the tick that everything starts above: what moves are the generators.
const NOW: u64 = 100;
const FLOOR: u64 = 99;
/// How far beyond what was used a grant or a renewal reaches.
const GRANTED_TICKS: u64 = 2;

#[derive(Clone, Copy, Debug)]
struct Still;

impl Clock for Still {
    fn read(&self) -> Reading {
        Reading::At(Moment { tick: NOW, left: Duration::from_millis(1) })
    }
}

/// Two IDs a tick: every thread meets ends of ticks and of horizons.
fn layout() -> Layout {
    Layout::new(&[("time", 20), ("worker", 2), ("sequence", 1)], 0, 1)
        .expect("a small layout works")
}

fn tick(id: Id) -> u64 {
    id.parts(&layout()).expect("an ID of the layout").tick
}

/// A generator of the one worker that all tenures have here, so that only floors keep them apart.
fn active(token: u64, floor: u64) -> ActiveGenerator<Still> {
    let options = Options::default()
        .with_floor(floor)
        .with_horizon(floor + GRANTED_TICKS)
        .with_max_ahead(Duration::from_millis(100))
        .with_least_lifetime(Duration::ZERO);
    let generator = Generator::new(&layout(), 1, Still, options).expect("the numbers fit");
    ActiveGenerator { generator, token }
}

/// How a keeper treats the slot: as the node does, or in a way that looks right and is not.
trait Keeping: 'static {
    /// Puts the generator of the next tenure in place.
    fn replace(slot: &GeneratorSlot<Still>, token: u64, ledger: &Ledger) {
        let made: Result<(), Infallible> = slot.replace(|last| {
            ledger.close(token - 1, last);
            Ok(ledger.grant(active(token, last.max(FLOOR))))
        });
        let Ok(()) = made;
    }

    /// Ends all issuing; gives the highest tick.
    fn close(slot: &GeneratorSlot<Still>) -> u64 {
        slot.close()
    }
}

/// As the node does.
struct Sound;

impl Keeping for Sound {}

/// One life of a slot: threads issue, while this one keeps it.
fn live<K: Keeping>(tally: &Tally) {
    let ledger = Arc::new(Ledger::default());
    let slot = Arc::new(GeneratorSlot::new());
    K::replace(&slot, 1, &ledger);
    let issuers: Vec<_> = (0..ISSUERS)
        .map(|_| {
            let (slot, ledger) = (Arc::clone(&slot), Arc::clone(&ledger));
            thread::spawn(move || issue(&slot, &ledger))
        })
        .collect();
    keep::<K>(&slot, &ledger);
    for issuer in issuers {
        issuer.join().expect("no thread panics");
    }
    tally.add(&ledger);
}

fn issue(slot: &GeneratorSlot<Still>, ledger: &Ledger) {
    for _ in 0..CALLS_OF_AN_ISSUER {
        let n = thread_rng().gen_range(1..=BATCH_MAX);
        let kind = thread_rng().gen_range(0..3);
        let before = ledger.before_a_call();
        let answer = slot.ask(|active| Ok((active.token, ids(&active.generator, kind, n)?)));
        ledger.enter(before, answer);
    }
}

fn ids(generator: &Generator<Still>, kind: u32, n: u32) -> Result<Vec<Id>, NotReady> {
    let of_batch = |batch: Batch| batch.iter().collect();
    match kind {
        0 => generator.try_next().map(|id| vec![id]),
        1 => generator.try_batch(n).map(of_batch),
        _ => generator.try_up_to(n).map(of_batch),
    }
}

/// Renews and moves to another tenure; releases it and gets another; shuts down.
fn keep<K: Keeping>(slot: &GeneratorSlot<Still>, ledger: &Ledger) {
    renew(slot, ledger);
    K::replace(slot, 2, ledger);
    renew(slot, ledger);
    end::<K>(slot, 2, ledger);
    K::replace(slot, 3, ledger);
    slot.reopen();
    ledger.reopened();
    renew(slot, ledger);
    end::<K>(slot, 3, ledger);
    let after = slot.ask(|active| active.generator.try_next());
    assert!(after.is_none(), "{after:?} was the answer after the close");
}

fn renew(slot: &GeneratorSlot<Still>, ledger: &Ledger) {
    let horizon = slot.last_tick() + GRANTED_TICKS;
    ledger.raise(horizon);
    slot.raise(horizon);
    // A late acknowledgement of an older horizon changes nothing.
    slot.raise(horizon - 1);
}

fn end<K: Keeping>(slot: &GeneratorSlot<Still>, token: u64, ledger: &Ledger) {
    ledger.ending();
    let last = K::close(slot);
    ledger.close(token, last);
    ledger.ended();
}

fn draw_random<K: Keeping>() -> Arc<Tally> {
    let tally = Arc::new(Tally::default());
    let of_runs = Arc::clone(&tally);
    shuttle::check_random(move || live::<K>(&of_runs), RANDOM_SCHEDULES);
    tally
}

fn draw_pct<K: Keeping>() -> Arc<Tally> {
    let tally = Arc::new(Tally::default());
    let of_runs = Arc::clone(&tally);
    shuttle::check_pct(move || live::<K>(&of_runs), PCT_SCHEDULES, PCT_DEPTH);
    tally
}

#[test]
fn random_schedules_repeat_nothing_keep_the_order_fail_nobody_and_end_with_the_close() {
    draw_random::<Sound>().assert_worth(RANDOM_SCHEDULES);
}

#[test]
fn pct_schedules_repeat_nothing_keep_the_order_fail_nobody_and_end_with_the_close() {
    draw_pct::<Sound>().assert_worth(PCT_SCHEDULES);
}
