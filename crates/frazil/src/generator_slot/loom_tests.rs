//! Every interleaving of issuing with replacing, raising and closing.

use std::convert::Infallible;
use std::time::Duration;

use frazil_id::{Clock, Generator, Id, Layout, Moment, NotReady, Options, Reading};
use loom::sync::Arc;
use loom::thread;

use super::{ActiveGenerator, GeneratorSlot};

const LAYOUT: Layout = Layout::FRAZIL;

/// Time stands still at a tick: what moves here are the generators.
#[derive(Clone, Copy, Debug)]
struct Still(u64);

impl Clock for Still {
    fn read(&self) -> Reading {
        Reading::At(Moment { tick: self.0, left: Duration::from_millis(1) })
    }
}

fn active(worker: u64, floor: u64, horizon: u64) -> ActiveGenerator<Still> {
    let options = Options::default()
        .with_floor(floor)
        .with_horizon(horizon)
        .with_max_ahead(Duration::from_millis(10));
    let generator = Generator::new(&LAYOUT, worker, Still(100), options).expect("the numbers fit");
    ActiveGenerator { generator, token: worker }
}

fn slot(floor: u64, horizon: u64) -> GeneratorSlot<Still> {
    let slot = GeneratorSlot::new();
    let made: Result<(), Infallible> = slot.replace(|_| Ok(active(1, floor, horizon)));
    let Ok(()) = made;
    slot
}

/// Issues two IDs meanwhile; neither may fail.
fn issuer_of_two(slot: Arc<GeneratorSlot<Still>>) -> thread::JoinHandle<(Id, Id)> {
    let issue = move || slot.ask(next).expect("there is one").expect("in time");
    thread::spawn(move || (issue(), issue()))
}

fn next(active: &ActiveGenerator<Still>) -> Result<Id, NotReady> {
    active.generator.try_next()
}

fn tick(id: Id) -> u64 {
    id.parts(&LAYOUT).expect("an ID of the layout").tick
}

#[test]
fn a_swap_fails_nobody_and_keeps_the_order() {
    loom::model(|| {
        let slot = Arc::new(slot(99, 200));
        let issuer = issuer_of_two(slot.clone());
        let mut above = 0;
        let made: Result<(), Infallible> = slot.replace(|last| {
            above = last;
            Ok(active(2, last.max(99), 200))
        });
        let Ok(()) = made;
        let (one, two) = issuer.join().expect("no panic");
        assert_ne!(one, two);
        for id in [one, two] {
            let parts = id.parts(&LAYOUT).expect("an ID of the layout");
            match parts.worker {
                1 => assert!(parts.tick <= above, "issued at {} after {above}", parts.tick),
                _ => assert!(parts.tick > above, "{} is not above {above}", parts.tick),
            }
        }
        assert!(tick(one) <= tick(two));
    });
}

#[test]
fn nothing_is_issued_after_the_close() {
    loom::model(|| {
        let slot = Arc::new(slot(99, 200));
        let issuer = thread::spawn({
            let slot = slot.clone();
            move || slot.ask(next)
        });
        let last = slot.close();
        assert!(slot.ask(next).is_none());
        if let Some(issued) = issuer.join().expect("no panic") {
            let tick = tick(issued.expect("in time"));
            assert!(tick <= last, "issued at {tick}, said {last}");
        }
    });
}

#[test]
fn a_raise_and_a_close_together_leave_nothing_above_the_last_tick() {
    loom::model(|| {
        // The horizon is where time is: the generator may issue only up to it.
        let slot = Arc::new(slot(99, 99));
        let issuer = thread::spawn({
            let slot = slot.clone();
            move || slot.ask(next)
        });
        slot.raise(100);
        let last = slot.close();
        if let Some(Ok(id)) = issuer.join().expect("no panic") {
            assert!(tick(id) <= last, "issued at {}, said {last}", tick(id));
        }
    });
}

#[test]
fn after_a_swap_the_new_horizon_holds() {
    loom::model(|| {
        let slot = Arc::new(slot(99, 200));
        let issuer = thread::spawn({
            let slot = slot.clone();
            move || slot.ask(next)
        });
        let made: Result<(), Infallible> = slot.replace(|last| Ok(active(2, last.max(99), 100)));
        let Ok(()) = made;
        slot.raise(101);
        if let Some(Ok(id)) = issuer.join().expect("no panic") {
            let parts = id.parts(&LAYOUT).expect("an ID of the layout");
            assert!(parts.worker == 1 || parts.tick <= 101, "{} past the horizon", parts.tick);
        }
    });
}

/// A slot that puts the new generator in place before it closes the old one: what the first test
/// must catch.
#[test]
#[should_panic(expected = "is not above")]
fn a_swap_that_publishes_before_it_closes_is_caught() {
    loom::model(|| {
        let slot = Arc::new(slot(99, 200));
        let issuer = issuer_of_two(slot.clone());
        let stale = slot.last_tick();
        slot.current.put(Some(active(2, stale, 200)));
        let last = stale.max(100);
        let (one, two) = issuer.join().expect("no panic");
        for id in [one, two] {
            let parts = id.parts(&LAYOUT).expect("an ID of the layout");
            assert!(parts.worker == 1 || parts.tick > last, "{} is not above {last}", parts.tick);
        }
    });
}
