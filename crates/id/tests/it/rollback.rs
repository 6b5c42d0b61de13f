//! What a generator does when real time steps back.

use std::time::Duration;

use frazil_id::{Generator, Layout, ManualClock, NotReady, Options, Rollback};

/// Four IDs a tick, 2^20 ticks of 1 ms from 1970, workers 0 to 3.
fn small() -> Layout {
    Layout::new(&[("time", 20), ("worker", 2), ("sequence", 2)], 0, 1).unwrap()
}

fn leased(floor: u64) -> Options {
    Options::default().with_floor(floor).with_least_lifetime(Duration::ZERO)
}

#[test]
fn a_clock_that_falls_before_the_epoch_stops_a_generator_until_it_is_right_again() {
    let layout = Layout::FRAZIL;
    let clock = ManualClock::new(&layout, 50);
    let ids = Generator::new(&layout, 0, &clock, leased(0)).unwrap();
    let before = ids.try_next().unwrap();
    clock.step_to_unix_ms(layout.epoch_ms() - 7);
    let expected = NotReady::ClockRefused { retry_after: Duration::from_millis(57) };
    assert_eq!(ids.try_next(), Err(expected));
    clock.step_to(51);
    assert!(ids.try_next().unwrap() > before);
}

#[test]
fn a_small_step_back_is_waited_out_a_large_one_refused_and_both_recover() {
    let layout = Layout::FRAZIL;
    let clock = ManualClock::new(&layout, 1000);
    let ids = Generator::new(&layout, 0, &clock, leased(5)).unwrap();
    let before = ids.try_next().unwrap();
    clock.step_to(996);
    let behind = NotReady::ClockBehind { retry_after: Duration::from_millis(4) };
    assert_eq!(ids.try_next(), Err(behind));
    clock.step_to(995);
    let refused = NotReady::ClockRefused { retry_after: Duration::from_millis(5) };
    assert_eq!(ids.try_next(), Err(refused));
    clock.advance(4);
    let behind = NotReady::ClockBehind { retry_after: Duration::from_millis(1) };
    assert_eq!(ids.try_next(), Err(behind));
    clock.advance(1);
    let after = ids.try_next().unwrap();
    assert!(after > before && after.parts(&layout).unwrap().tick == 1000);
}

#[test]
fn next_and_batch_wait_out_a_small_step_back() {
    let layout = Layout::FRAZIL;
    let clock = ManualClock::new(&layout, 1000);
    let ids = Generator::new(&layout, 0, &clock, leased(5)).unwrap();
    let before = ids.try_next().unwrap();
    clock.step_to(996);
    let (one, many) = std::thread::scope(|scope| {
        let one = scope.spawn(|| ids.next());
        let many = scope.spawn(|| ids.batch(3));
        clock.advance(4);
        (one.join().unwrap(), many.join().unwrap())
    });
    assert!(one.unwrap() > before);
    assert!(many.unwrap().iter().all(|id| id > before));
}

#[test]
fn an_unleased_start_on_a_clock_that_stepped_back_is_above_all_that_it_ever_said() {
    let layout = small();
    let clock = ManualClock::new(&layout, 1000);
    let start = |rollback| {
        let options =
            Options::default().with_rollback(rollback).with_least_lifetime(Duration::ZERO);
        Generator::new(&layout, 1, &clock, options).unwrap().last_tick()
    };
    assert_eq!(start(Rollback::Refuse), Some(1000));
    clock.step_to(900);
    assert_eq!((start(Rollback::Refuse), start(Rollback::Ride)), (Some(1000), Some(1000)));
    clock.advance(160);
    // Real time is at 1060 and has caught up; the steady line is at 1140.
    assert_eq!((start(Rollback::Refuse), start(Rollback::Ride)), (Some(1060), Some(1140)));
}

#[test]
fn riding_issues_through_a_fall_to_1970() {
    let layout = Layout::FRAZIL;
    let clock = ManualClock::new(&layout, 1000);
    let options = leased(5).with_rollback(Rollback::Ride);
    let ids = Generator::new(&layout, 0, &clock, options).unwrap();
    let before = ids.try_next().unwrap();
    clock.step_to_unix_ms(0);
    assert!(ids.try_next().unwrap() > before);
    clock.advance(80);
    assert_eq!(ids.try_next().unwrap().parts(&layout).unwrap().tick, 1070);
}

#[test]
fn riding_issues_through_a_step_back_at_the_speed_of_elapsed_time() {
    let layout = small();
    let clock = ManualClock::new(&layout, 1000);
    let options = leased(5).with_rollback(Rollback::Ride);
    let ids = Generator::new(&layout, 0, &clock, options).unwrap();
    ids.try_batch(4).unwrap();
    clock.step_to(200);
    assert!(matches!(ids.try_next(), Err(NotReady::SequenceExhausted { .. })));
    let mut issued = 0;
    for _ in 0..80 {
        clock.advance(1);
        issued += std::iter::from_fn(|| ids.try_next().ok()).count();
    }
    // 80 ticks pass; the line goes on at 7/8 of that, with four IDs a tick.
    assert_eq!(issued, 70 * 4);
    assert_eq!(ids.last_tick(), Some(1070));
    // The clock is set right: real time again, at once and without a gap.
    clock.step_to(2000);
    assert_eq!(ids.try_next().unwrap().parts(&layout).unwrap().tick, 2000);
}
