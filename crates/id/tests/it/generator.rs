//! The generator: it answers as `step` does, at every edge of time.

use std::cell::{Cell, OnceCell};
use std::rc::{Rc, Weak};
use std::time::Duration;

use frazil_id::{
    Ask, Batch, Bounds, Clock, Closed, Generator, Id, Layout, ManualClock, NotReady, Options,
    PRESETS, Parts, Reading, Rollback, Run, StartError, SystemClock, TickerClock, step,
};
use proptest::prelude::*;

/// Four IDs a tick, 2^20 ticks of 1 ms from 1970, workers 0 to 3.
fn small() -> Layout {
    Layout::new(&[("time", 20), ("worker", 2), ("sequence", 2)], 0, 1).unwrap()
}

fn leased(floor: u64) -> Options {
    Options::default().with_floor(floor).with_least_lifetime(Duration::ZERO)
}

fn at(layout: &Layout, tick: u64, options: Options) -> Generator<ManualClock> {
    Generator::new(layout, 1, ManualClock::new(layout, tick), options).unwrap()
}

fn ticks(layout: &Layout, batch: &Batch) -> Vec<u64> {
    batch.iter().map(|id| id.parts(layout).unwrap().tick).collect()
}

#[test]
fn ids_carry_the_tick_the_worker_and_the_sequence() {
    let ids = at(&Layout::FRAZIL, 1000, leased(999));
    for sequence in 0..4096 {
        let parts = ids.try_next().unwrap().parts(&Layout::FRAZIL).unwrap();
        assert_eq!(parts, Parts { tick: 1000, worker: 1, sequence });
    }
    let expected = NotReady::SequenceExhausted { retry_after: Duration::from_millis(1) };
    assert_eq!(ids.try_next(), Err(expected));
}

#[test]
fn an_unleased_start_is_after_the_current_tick() {
    let layout = small();
    let clock = ManualClock::new(&layout, 10);
    let options = Options::default().with_least_lifetime(Duration::ZERO);
    let first = Generator::new(&layout, 1, &clock, options).unwrap();
    assert!(matches!(first.try_next(), Err(NotReady::SequenceExhausted { .. })));
    clock.advance(1);
    let issued = first.try_next().unwrap();
    assert_eq!(issued.parts(&layout).unwrap().tick, 11);
    // Restarted in the same tick: nothing of it is issued again.
    let second = Generator::new(&layout, 1, &clock, options).unwrap();
    assert!(second.try_next().is_err());
    clock.advance(1);
    assert!(second.try_next().unwrap() > issued);
}

#[test]
fn an_unleased_start_is_after_what_may_have_run_ahead() {
    let layout = small();
    let clock = ManualClock::new(&layout, 10);
    let max_ahead = Duration::from_millis(3);
    let options = Options::default().with_max_ahead(max_ahead).with_least_lifetime(Duration::ZERO);
    let first = Generator::new(&layout, 1, &clock, options).unwrap();
    clock.advance(1);
    let issued: Vec<Id> = std::iter::from_fn(|| first.try_next().ok()).collect();
    assert_eq!(issued.last().unwrap().parts(&layout).unwrap().tick, 14);
    let second = Generator::new(&layout, 1, &clock, options).unwrap();
    clock.advance(1);
    assert!(second.try_next().unwrap() > *issued.last().unwrap());
}

#[test]
fn quick_restarts_on_the_system_clock_repeat_nothing() {
    let mut last = Id::from_u64(0);
    for _ in 0..20 {
        let ids = Generator::system(&Layout::FRAZIL, 3).unwrap();
        for _ in 0..3 {
            let id = ids.next().unwrap();
            assert!(id > last);
            last = id;
        }
    }
}

#[test]
fn the_epoch_the_last_tick_and_one_past_it_with_every_preset() {
    for (name, layout) in PRESETS.iter().copied().filter(|(name, _)| *name != "mastodon") {
        let clock = ManualClock::new(&layout, 0);
        if let Some(before) = layout.epoch_ms().checked_sub(1) {
            clock.step_to_unix_ms(before);
            let refused = Generator::new(&layout, 0, &clock, leased(0)).unwrap_err();
            assert!(matches!(refused, StartError::Clock(NotReady::BeforeEpoch { .. })), "{name}");
        }
        // At the epoch itself tick 0 is the floor of a first holder, so it is never stamped.
        clock.step_to(0);
        let ids = Generator::new(&layout, 0, &clock, leased(0)).unwrap();
        assert_eq!(ids.try_next().unwrap().parts(&layout).unwrap().tick, 1, "{name}");
        clock.step_to(layout.last_tick());
        let last = ids.try_next().unwrap().parts(&layout).unwrap();
        assert_eq!((last.tick, last.sequence), (layout.last_tick(), 0), "{name}");
        let exhausted = Err(NotReady::TimeExhausted { last_tick: layout.last_tick() });
        clock.step_to(layout.last_tick() + 1);
        assert_eq!(ids.try_next(), exhausted, "{name}");
        assert_eq!(ids.next(), exhausted, "{name}");
        clock.step_to(u64::MAX);
        assert_eq!(ids.try_next(), exhausted, "{name}");
    }
}

#[test]
fn the_very_last_id_is_issued_and_then_none() {
    let layout = small();
    let ids = at(&layout, layout.last_tick(), leased(layout.last_tick() - 1));
    let batch = ids.try_batch(4).unwrap();
    let highest = Parts { tick: layout.last_tick(), worker: 1, sequence: 3 };
    assert_eq!(batch.iter().last(), Some(layout.encode(highest).unwrap()));
    let exhausted = NotReady::TimeExhausted { last_tick: layout.last_tick() };
    assert_eq!(ids.try_next(), Err(exhausted));
    assert_eq!(ids.batch(1), Err(exhausted));
}

#[test]
fn a_clock_far_past_the_end_does_not_wrap_into_a_tick_that_is_open() {
    let layout = small();
    let clock = ManualClock::new(&layout, 10);
    let ids = Generator::new(&layout, 1, &clock, leased(9)).unwrap();
    ids.try_next().unwrap();
    // Shifted by the two sequence bits, this tick is tick 10 again.
    clock.step_to((1 << 62) + 10);
    let exhausted = NotReady::TimeExhausted { last_tick: layout.last_tick() };
    assert_eq!(ids.try_next(), Err(exhausted));
    assert_eq!(ids.try_batch(2), Err(exhausted));
}

#[test]
fn a_start_that_cannot_work_is_refused_with_its_reason() {
    let layout = small();
    let start = |worker, options| {
        Generator::new(&layout, worker, ManualClock::new(&layout, 5), options).map(|_| ())
    };
    let options = leased(0);
    assert_eq!(start(3, options), Ok(()));
    assert_eq!(start(4, options), Err(StartError::WorkerTooLarge { worker: 4, max: 3 }));
    let too_far = options.with_max_ahead(Duration::MAX);
    assert!(matches!(start(0, too_far), Err(StartError::AheadTooLong { .. })));
    let too_wide = options.with_spread(3);
    assert_eq!(start(0, too_wide), Err(StartError::SpreadTooLarge { spread: 3, max: 2 }));
    let max = layout.last_tick() - 1;
    assert_eq!(start(0, leased(max)), Ok(()));
    let too_high = StartError::FloorTooHigh { floor: max + 1, max };
    assert_eq!(start(0, leased(max + 1)), Err(too_high));
    assert!(matches!(start(0, leased(u64::MAX)), Err(StartError::FloorTooHigh { .. })));
    let decode_only = Generator::system(&Layout::MASTODON, 0).unwrap_err();
    assert_eq!(decode_only, StartError::DecodeOnly { ticket_bits: 64 });
    // 2^20 ms are 17 minutes.
    let short = start(0, Options::default()).unwrap_err();
    assert!(
        matches!(short, StartError::LifetimeTooShort { least, .. } if least.as_secs() == 86_400)
    );
}

#[test]
fn batches_across_ticks_are_whole_sorted_and_unique_with_every_preset() {
    for (name, layout) in PRESETS.iter().copied().filter(|(name, _)| *name != "mastodon") {
        let max_ahead = Duration::from_millis(u64::from(layout.tick_ms()) * 3);
        let ids = at(&layout, 1000, leased(999).with_max_ahead(max_ahead));
        let per_tick = u32::try_from(layout.ids_per_tick()).unwrap();
        ids.try_next().unwrap();
        let n = per_tick * 2 + 5;
        let batch = ids.try_batch(n).unwrap();
        assert_eq!(batch.len(), n as usize, "{name}");
        let issued: Vec<Id> = batch.iter().collect();
        assert!(issued.len() == batch.len() && issued.is_sorted_by(|a, b| a < b), "{name}");
        let mut buffer = vec![Id::from_u64(0); issued.len() + 1];
        assert_eq!(batch.copy_to(&mut buffer), issued, "{name}");
        assert_eq!(ticks(&layout, &batch).first(), Some(&1000), "{name}");
        assert_eq!(ticks(&layout, &batch).last(), Some(&1002), "{name}");
        assert!(issued.iter().all(|id| id.parts(&layout).unwrap().worker == 1), "{name}");
        let counts: Vec<u64> = batch.runs().map(|run| run.count).collect();
        let per_tick = u64::from(per_tick);
        assert_eq!(counts, [per_tick - 1, per_tick, 6], "{name}");
        let stride = if name == "sonyflake" { 1 << 16 } else { 1 };
        assert!(batch.runs().all(|run| run.stride == stride), "{name}");
    }
}

#[test]
fn a_refused_batch_loses_no_ids() {
    let layout = small();
    let ids = at(&layout, 10, leased(9));
    let first = ids.try_next().unwrap();
    assert!(matches!(ids.try_batch(4), Err(NotReady::SequenceExhausted { .. })));
    assert_eq!(ids.try_batch(5), Err(NotReady::BatchTooLarge { max: 4 }));
    assert_eq!(ids.try_batch(u32::MAX), Err(NotReady::BatchTooLarge { max: 4 }));
    assert_eq!(ids.try_batch(3).unwrap().iter().next().unwrap().to_u64(), first.to_u64() + 1);
}

#[test]
fn a_batch_of_none_is_empty() {
    let ids = at(&small(), 10, leased(9));
    for batch in [ids.try_batch(0).unwrap(), ids.batch(0).unwrap()] {
        assert!(batch.is_empty() && batch.iter().next().is_none() && batch.runs().next().is_none());
    }
}

#[test]
fn up_to_takes_what_there_is_and_a_check_takes_nothing() {
    let ids = at(&small(), 10, leased(9));
    assert_eq!(ids.check(), Ok(()));
    assert_eq!(ids.try_up_to(0).unwrap().len(), 0);
    assert_eq!(ids.try_up_to(3).unwrap().len(), 3);
    assert_eq!(ids.check(), Ok(()));
    assert_eq!(ids.try_up_to(u32::MAX).unwrap().len(), 1);
    let used_up = NotReady::SequenceExhausted { retry_after: Duration::from_millis(1) };
    assert_eq!((ids.try_up_to(1), ids.check()), (Err(used_up), Err(used_up)));
    ids.close();
    assert_eq!(ids.check(), Err(NotReady::Closed));
}

#[test]
fn batches_of_one_generator_join_in_order_only() {
    let layout = small();
    let clock = ManualClock::new(&layout, 10);
    let ids = Generator::new(&layout, 1, &clock, leased(9)).unwrap();
    let (mut all, second) = (ids.try_batch(2).unwrap(), ids.try_batch(2).unwrap());
    clock.advance(10);
    let third = ids.try_batch(3).unwrap();
    let expected: Vec<Id> = all.iter().chain(&second).chain(&third).collect();
    assert_eq!(all.join(second), Ok(()));
    assert_eq!(all.join(third.clone()), Ok(()));
    assert_eq!(all.join(third.clone()), Err(third));
    assert_eq!(all.join(ids.try_batch(0).unwrap()), Ok(()));
    assert_eq!((all.iter().collect::<Vec<_>>(), all.len()), (expected, 7));
    let other = Generator::new(&layout, 2, &clock, leased(20)).unwrap();
    clock.advance(10);
    assert!(all.join(other.try_batch(1).unwrap()).is_err());
    let mut none = ids.try_batch(0).unwrap();
    assert_eq!(none.join(all.clone()), Ok(()));
    assert_eq!(none, all);
}

#[test]
fn a_waiting_batch_spans_as_many_ticks_as_it_takes() {
    let ids = Generator::system(&Layout::FRAZIL, 5).unwrap();
    let batch = ids.batch(20_000).unwrap();
    let issued: Vec<Id> = batch.iter().collect();
    assert_eq!((batch.len(), issued.len()), (20_000, 20_000));
    assert!(issued.is_sorted_by(|a, b| a < b));
    let runs: Vec<Run> = batch.runs().collect();
    assert!(runs.len() >= 5 && runs.iter().all(|run| run.count <= 4096), "{}", runs.len());
}

#[test]
fn the_horizon_stops_issuing_and_raising_it_goes_on() {
    let layout = small();
    let ids = at(&layout, 10, leased(9).with_horizon(10));
    assert_eq!(ids.try_batch(4).unwrap().len(), 4);
    let reached = NotReady::Horizon { horizon: 10 };
    assert_eq!(ids.try_next(), Err(reached));
    ids.raise_horizon(3);
    assert_eq!((ids.horizon(), ids.try_next()), (10, Err(reached)));
    ids.raise_horizon(12);
    assert!(matches!(ids.try_next(), Err(NotReady::SequenceExhausted { .. })));
    ids.raise_horizon(u64::MAX);
    assert_eq!(ids.horizon(), layout.last_tick());
}

#[test]
fn closing_is_final_and_says_the_last_tick() {
    let layout = small();
    let ids = at(&layout, 10, leased(5));
    assert_eq!(ids.last_tick(), Some(5));
    ids.try_next().unwrap();
    assert_eq!(ids.last_tick(), Some(10));
    assert_eq!(ids.close(), Some(Closed { last_tick: 10 }));
    assert_eq!((ids.close(), ids.last_tick()), (None, None));
    ids.raise_horizon(500);
    assert_eq!(ids.try_next(), Err(NotReady::Closed));
    assert_eq!(ids.next(), Err(NotReady::Closed));
    assert_eq!(ids.batch(2), Err(NotReady::Closed));
    // A holder that issued nothing says its floor.
    assert_eq!(at(&layout, 10, leased(5)).close(), Some(Closed { last_tick: 5 }));
}

#[test]
fn a_caller_that_waits_long_learns_that_the_generator_was_closed() {
    /// A clock that is slept for, and stands.
    struct Stopped(ManualClock);
    impl Clock for Stopped {
        fn read(&self) -> Reading {
            self.0.read()
        }
    }
    let layout = Layout::FRAZIL;
    let clock = Stopped(ManualClock::new(&layout, 1000));
    // A floor an hour ahead opens one tick, and then there is nothing for an hour.
    let ids = Generator::new(&layout, 0, &clock, leased(3_601_000)).unwrap();
    ids.try_batch(4096).unwrap();
    let waited = std::thread::scope(|scope| {
        let waiting = scope.spawn(|| ids.next());
        ids.close().unwrap();
        waiting.join().unwrap()
    });
    assert_eq!(waited, Err(NotReady::Closed));
}

#[test]
fn nobody_waits_for_a_clock_that_stands() {
    let layout = Layout::FRAZIL;
    let clock = ManualClock::new(&layout, 100);
    let ids = Generator::new(&layout, 1, &clock, Options::default()).unwrap();
    assert!(matches!(ids.next(), Err(NotReady::SequenceExhausted { .. })));
    assert!(matches!(ids.batch(3), Err(NotReady::SequenceExhausted { .. })));
    clock.advance(1);
    assert_eq!(ids.next().unwrap().parts(&layout).unwrap().tick, 101);
}

#[test]
fn an_advancing_clock_moves_on_instead_of_being_waited_for() {
    let layout = Layout::FRAZIL;
    let clock = ManualClock::advancing(&layout, 100);
    let ids = Generator::new(&layout, 1, &clock, Options::default()).unwrap();
    assert_eq!(ids.next().unwrap().parts(&layout).unwrap().tick, 101);
    let batch: Vec<Id> = ids.batch(4096 * 20).unwrap().iter().collect();
    assert!(batch.is_sorted_by(|a, b| a < b));
    assert_eq!(batch[batch.len() - 1].parts(&layout).unwrap().tick, 121);
    // A step back that is short enough to be waited out.
    clock.step_to(118);
    assert!(ids.next().unwrap() > batch[batch.len() - 1]);
}

#[test]
fn a_thread_that_read_the_clock_long_ago_does_not_see_a_used_up_sequence() {
    /// A clock whose first reader is overtaken by another, 50 ticks later.
    struct Overtaken {
        clock: ManualClock,
        ids: OnceCell<Weak<Generator<Self>>>,
        overtaken: Cell<bool>,
    }
    impl Clock for Overtaken {
        fn read(&self) -> Reading {
            let reading = self.clock.read();
            if let Some(ids) = self.ids.get().and_then(Weak::upgrade)
                && !self.overtaken.replace(true)
            {
                self.clock.advance(50);
                ids.try_next().unwrap();
            }
            reading
        }
    }
    let layout = small();
    let clock = ManualClock::new(&layout, 100);
    let clock = Overtaken { clock, ids: OnceCell::new(), overtaken: Cell::new(false) };
    let ids = Rc::new_cyclic(|this| {
        clock.ids.set(Weak::clone(this)).unwrap();
        Generator::new(&layout, 1, clock, leased(50)).unwrap()
    });
    assert_eq!(ids.try_next().unwrap().parts(&layout).unwrap().tick, 150);
}

#[test]
fn spread_changes_low_bits_and_never_order() {
    let layout = Layout::FRAZIL;
    let clock = ManualClock::new(&layout, 1000);
    let ids = Generator::new(&layout, 9, &clock, leased(5).with_spread(16)).unwrap();
    let issued: Vec<u64> = std::iter::repeat_with(|| {
        clock.advance(1);
        ids.try_next().unwrap().to_u64()
    })
    .take(1600)
    .collect();
    assert!(issued.is_sorted_by(|a, b| a < b));
    for shard in 0..16 {
        let share = issued.iter().filter(|id| *id % 16 == shard).count();
        assert!((50..=160).contains(&share), "shard {shard} got {share} of 1600");
    }
}

#[test]
fn the_clocks_agree_and_ids_carry_real_time() {
    let layout = Layout::FRAZIL;
    let exact = SystemClock::new(&layout);
    let by_ticker =
        Generator::new(&layout, 1, TickerClock::start(&layout).unwrap(), Options::default())
            .unwrap();
    let by_system = Generator::system(&layout, 2).unwrap();
    for _ in 0..2000 {
        let earliest = by_system.next().unwrap().parts(&layout).unwrap().tick;
        let ticked = by_ticker.next().unwrap().parts(&layout).unwrap().tick;
        let latest = exact.tick().unwrap();
        assert!(earliest <= latest && ticked <= latest);
    }
}

/// What a caller and the world do to a generator.
#[derive(Clone, Debug)]
enum Act {
    Next,
    Batch(u32),
    Advance(u64),
    StepTo(u64),
    RaiseHorizon(u64),
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        6 => Just(Act::Next),
        2 => (0_u32..14).prop_map(Act::Batch),
        2 => (0_u64..4).prop_map(Act::Advance),
        1 => (90_u64..120).prop_map(Act::StepTo),
        1 => (95_u64..130).prop_map(Act::RaiseHorizon),
    ];
    prop::collection::vec(act, 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3_000))]

    /// The lock-free shell gives the answers of `step`, call by call, and every promise of an
    /// issued ID holds.
    #[test]
    fn the_generator_answers_as_step_does(
        acts in acts(),
        floor in 80_u64..105,
        max_ahead in 0_u64..3,
        spread in 0_u32..=2,
        rollback in prop::sample::select(vec![Rollback::Wait, Rollback::Refuse, Rollback::Ride]),
    ) {
        let layout = small();
        let clock = ManualClock::new(&layout, 100);
        let options = leased(floor).with_horizon(110).with_max_ahead(Duration::from_millis(max_ahead)).with_rollback(rollback).with_spread(spread);
        let ids = Generator::new(&layout, 1, &clock, options).unwrap();
        let rules = options.rules(&layout, 1).unwrap();
        let mut bounds = Bounds { floor, horizon: 110 };
        let mut last = (floor + 1) * 4 - 1;
        for act in acts {
            let (got, ask) = match act {
                Act::Next => (ids.try_next().map(|id| vec![id]), Ask::exactly(1)),
                Act::Batch(0) => continue,
                Act::Batch(n) => {
                    let got = ids.try_batch(n).map(|batch| batch.iter().collect());
                    (got, Ask::exactly(n.into()))
                }
                Act::Advance(ticks) => { clock.advance(ticks); continue }
                Act::StepTo(tick) => { clock.step_to(tick); continue }
                Act::RaiseHorizon(tick) => {
                    ids.raise_horizon(tick);
                    bounds.horizon = bounds.horizon.max(tick);
                    continue;
                }
            };
            let expected = step(&rules, bounds, last, clock.read(), ask).map(|granted| {
                last = granted.last();
                (granted.first..=granted.last())
                    .map(|ticket| {
                        let (tick, sequence) = (ticket / 4, ticket % 4);
                        layout.encode(Parts { tick, worker: 1, sequence }).unwrap()
                    })
                    .collect::<Vec<_>>()
            });
            prop_assert_eq!(&got, &expected);
            for id in got.unwrap_or_default() {
                let tick = id.parts(&layout).unwrap().tick;
                prop_assert!(floor < tick && tick <= bounds.horizon);
            }
        }
    }
}
