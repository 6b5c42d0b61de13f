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
use super::{Relay, Seated};

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

/// Two Ids a tick: every thread meets ends of ticks and of horizons.
fn layout() -> Layout {
    Layout::new(&[("time", 20), ("worker", 2), ("sequence", 1)], 0, 1)
        .expect("a small layout works")
}

fn tick(id: Id) -> u64 {
    id.parts(&layout()).expect("an Id of the layout").tick
}

/// A generator of the one worker that all tenures have here, so that only floors keep them apart.
fn seated(token: u64, floor: u64) -> Seated<Still> {
    let options = Options {
        floor: Some(floor),
        horizon: Some(floor + GRANTED_TICKS),
        max_ahead: Duration::from_millis(100),
        least_lifetime: Duration::ZERO,
        ..Options::default()
    };
    let generator = Generator::new(&layout(), 1, Still, options).expect("the numbers fit");
    Seated { generator, token }
}

/// How a keeper treats the relay: as the node does, or in a way that looks right and is not.
trait Keeping: 'static {
    /// Puts the generator of the next tenure in place.
    fn replace(relay: &Relay<Still>, token: u64, ledger: &Ledger) {
        let made: Result<(), Infallible> = relay.replace(|last| {
            ledger.close(token - 1, last);
            Ok(ledger.grant(seated(token, last.max(FLOOR))))
        });
        let Ok(()) = made;
    }

    /// Ends all issuing; gives the highest tick.
    fn close(relay: &Relay<Still>) -> u64 {
        relay.close()
    }
}

/// As the node does.
struct Sound;

impl Keeping for Sound {}

/// One life of a relay: threads issue, while this one keeps it.
fn live<K: Keeping>(tally: &Tally) {
    let ledger = Arc::new(Ledger::default());
    let relay = Arc::new(Relay::new());
    K::replace(&relay, 1, &ledger);
    let issuers: Vec<_> = (0..ISSUERS)
        .map(|_| {
            let (relay, ledger) = (Arc::clone(&relay), Arc::clone(&ledger));
            thread::spawn(move || issue(&relay, &ledger))
        })
        .collect();
    keep::<K>(&relay, &ledger);
    for issuer in issuers {
        issuer.join().expect("no thread panics");
    }
    tally.add(&ledger);
}

fn issue(relay: &Relay<Still>, ledger: &Ledger) {
    for _ in 0..CALLS_OF_AN_ISSUER {
        let n = thread_rng().gen_range(1..=BATCH_MAX);
        let kind = thread_rng().gen_range(0..3);
        let before = ledger.before_a_call();
        let answer = relay.ask(|seated| Ok((seated.token, ids(&seated.generator, kind, n)?)));
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
fn keep<K: Keeping>(relay: &Relay<Still>, ledger: &Ledger) {
    renew(relay, ledger);
    K::replace(relay, 2, ledger);
    renew(relay, ledger);
    end::<K>(relay, 2, ledger);
    K::replace(relay, 3, ledger);
    relay.reopen();
    ledger.reopened();
    renew(relay, ledger);
    end::<K>(relay, 3, ledger);
    let after = relay.ask(|seated| seated.generator.try_next());
    assert!(after.is_none(), "{after:?} was the answer after the close");
}

fn renew(relay: &Relay<Still>, ledger: &Ledger) {
    let horizon = relay.last_tick() + GRANTED_TICKS;
    ledger.raise(horizon);
    relay.raise(horizon);
    // A late acknowledgement of an older horizon changes nothing.
    relay.raise(horizon - 1);
}

fn end<K: Keeping>(relay: &Relay<Still>, token: u64, ledger: &Ledger) {
    ledger.ending();
    let last = K::close(relay);
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
