//! One test for each rule of the table in `step.rs`: taking the rule out of `step` fails its test.

use super::*;

const MS: Duration = Duration::from_millis(1);

/// Four tickets a tick, 1,000 ticks, nothing ahead.
const RULES: Rules = Rules {
    sequence_bits: 2,
    last_tick: 999,
    tick: MS,
    max_ahead: 0,
    rollback: Rollback::Refuse,
    rollback_tolerance: Duration::from_millis(5),
    spread: 0,
    salt: 0,
};
const BOUNDS: Bounds = Bounds { floor: 0, horizon: 999 };

/// The ticket of a tick and a sequence.
const fn ticket(tick: u64, sequence: u64) -> u64 {
    tick << 2 | sequence
}

/// Real time a quarter into a tick.
const fn at(tick: u64) -> Reading {
    Reading::At(Moment { tick, left: Duration::from_micros(750) })
}

fn stepped(behind: Duration) -> Reading {
    Reading::Stepped {
        real: Moment { tick: 80, left: MS },
        behind,
        steady: Moment { tick: 110, left: MS },
    }
}

fn one(rules: Rules, bounds: Bounds, last: u64, reading: Reading) -> Result<u64, NotReady> {
    step(&rules, bounds, last, reading, Ask::exactly(1)).map(|granted| granted.first)
}

fn exhausted(micros: u64) -> NotReady {
    NotReady::SequenceExhausted { retry_after: Duration::from_micros(micros) }
}

#[test]
fn a_new_tick_opens_at_sequence_zero_and_goes_on_one_by_one() {
    assert_eq!(one(RULES, BOUNDS, ticket(99, 1), at(100)), Ok(ticket(100, 0)));
    assert_eq!(one(RULES, BOUNDS, ticket(100, 0), at(100)), Ok(ticket(100, 1)));
    assert_eq!(one(RULES, BOUNDS, ticket(100, 2), at(100)), Ok(ticket(100, 3)));
}

#[test]
fn the_ticket_after_the_last_is_never_lowered_by_the_clock() {
    let rules = Rules { max_ahead: 20, ..RULES };
    assert_eq!(one(rules, BOUNDS, ticket(110, 2), at(100)), Ok(ticket(110, 3)));
}

#[test]
fn sequence_overflow_carries_into_the_next_tick() {
    let rules = Rules { max_ahead: 1, ..RULES };
    assert_eq!(one(rules, BOUNDS, ticket(100, 3), at(100)), Ok(ticket(101, 0)));
}

#[test]
fn every_tick_is_above_the_floor() {
    let bounds = Bounds { floor: 150, ..BOUNDS };
    // Whatever the last ticket was, and even if the clock has not passed the floor.
    assert_eq!(one(RULES, bounds, 0, at(100)), Ok(ticket(151, 0)));
    assert_eq!(one(RULES, bounds, ticket(150, 1), at(100)), Ok(ticket(151, 0)));
    assert_eq!(one(RULES, bounds, 0, at(200)), Ok(ticket(200, 0)));
}

#[test]
fn a_floor_ahead_of_the_clock_opens_one_tick_only() {
    let bounds = Bounds { floor: 150, ..BOUNDS };
    assert_eq!(one(RULES, bounds, ticket(151, 2), at(100)), Ok(ticket(151, 3)));
    // 52 ticks to tick 152, of which a quarter of one has passed.
    assert_eq!(one(RULES, bounds, ticket(151, 3), at(100)), Err(exhausted(51_750)));
}

#[test]
fn no_tick_is_past_the_horizon() {
    let bounds = Bounds { horizon: 100, ..BOUNDS };
    assert_eq!(one(RULES, bounds, 0, at(100)), Ok(ticket(100, 0)));
    assert_eq!(one(RULES, bounds, 0, at(101)), Err(NotReady::Horizon { horizon: 100 }));
}

#[test]
fn the_horizon_is_tested_on_the_last_ticket_of_a_grant() {
    let bounds = Bounds { horizon: 100, ..BOUNDS };
    let rules = Rules { max_ahead: 5, ..RULES };
    let ask = |ask| step(&rules, bounds, ticket(99, 3), at(100), ask);
    assert_eq!(ask(Ask::exactly(4)), Ok(Granted { first: ticket(100, 0), count: 4 }));
    assert_eq!(ask(Ask::exactly(5)), Err(NotReady::Horizon { horizon: 100 }));
    assert_eq!(ask(Ask::up_to(5)), Ok(Granted { first: ticket(100, 0), count: 4 }));
}

#[test]
fn ids_run_ahead_of_the_clock_by_max_ahead_and_no_more() {
    for max_ahead in [0, 1, 7] {
        let rules = Rules { max_ahead, ..RULES };
        let last = ticket(100 + max_ahead, 2);
        assert_eq!(one(rules, BOUNDS, last, at(100)), Ok(last + 1));
        assert_eq!(one(rules, BOUNDS, last + 1, at(100)), Err(exhausted(750)));
    }
}

#[test]
fn retry_after_is_exact_to_the_tick_that_has_room() {
    let rules = Rules { max_ahead: 2, ..RULES };
    // The next ticket is in tick 110, which opens when tick 108 begins.
    assert_eq!(one(rules, BOUNDS, ticket(109, 3), at(100)), Err(exhausted(7_750)));
    assert_eq!(one(rules, BOUNDS, ticket(109, 3), at(107)), Err(exhausted(750)));
    assert!(one(rules, BOUNDS, ticket(109, 3), at(108)).is_ok());
    // It is the last ticket of a grant that must have room.
    let three = |tick| step(&rules, BOUNDS, ticket(109, 0), at(tick), Ask::exactly(3));
    assert_eq!(three(100), Err(exhausted(6_750)));
    assert_eq!(three(107).map(|granted| granted.last()), Ok(ticket(109, 3)));
}

#[test]
fn a_grant_may_be_a_part_of_what_was_wanted_but_never_less_than_asked() {
    let ask = |ask| step(&RULES, BOUNDS, ticket(100, 0), at(100), ask);
    assert_eq!(ask(Ask::up_to(9)), Ok(Granted { first: ticket(100, 1), count: 3 }));
    assert_eq!(ask(Ask::exactly(3)), Ok(Granted { first: ticket(100, 1), count: 3 }));
    assert_eq!(ask(Ask::exactly(4)), Err(exhausted(750)));
}

#[test]
fn more_than_the_ticks_that_may_be_open_is_never_granted_at_once() {
    let rules = Rules { max_ahead: 1, ..RULES };
    let ask = |n| step(&rules, BOUNDS, ticket(99, 3), at(100), Ask::exactly(n));
    assert_eq!(ask(8), Ok(Granted { first: ticket(100, 0), count: 8 }));
    assert_eq!(ask(9), Err(NotReady::BatchTooLarge { max: 8 }));
    assert_eq!(ask(u64::MAX), Err(NotReady::BatchTooLarge { max: 8 }));
}

#[test]
fn the_layouts_last_tick_is_issued_and_the_one_after_is_not() {
    let exhausted = Err(NotReady::TimeExhausted { last_tick: 999 });
    assert_eq!(one(RULES, BOUNDS, ticket(999, 2), at(999)), Ok(ticket(999, 3)));
    assert_eq!(one(RULES, BOUNDS, ticket(999, 3), at(999)), exhausted);
    assert_eq!(one(RULES, BOUNDS, ticket(5, 0), at(1000)), exhausted);
    assert_eq!(one(RULES, BOUNDS, ticket(5, 0), at(u64::MAX)), exhausted);
    // Shifted without care, this tick would be tick 5 again.
    assert_eq!(one(RULES, BOUNDS, ticket(5, 0), at((1 << 62) + 5)), exhausted);
    let far_bounds = Bounds { horizon: u64::MAX, ..BOUNDS };
    let ahead = Rules { max_ahead: 999, ..RULES };
    assert_eq!(one(ahead, far_bounds, ticket(999, 3), at(999)), exhausted);
}

#[test]
fn before_the_epoch_nothing_is_issued() {
    let reading = Reading::BeforeEpoch { by: MS };
    assert_eq!(one(RULES, BOUNDS, 0, reading), Err(NotReady::BeforeEpoch { retry_after: MS }));
}

#[test]
fn a_step_back_below_the_tolerance_is_waited_out() {
    let behind = MS * 5 - Duration::from_nanos(1);
    let expected = Err(NotReady::ClockBehind { retry_after: behind });
    assert_eq!(one(RULES, BOUNDS, ticket(100, 0), stepped(behind)), expected);
}

#[test]
fn a_step_back_of_the_tolerance_or_more_is_refused() {
    let expected = Err(NotReady::ClockRefused { retry_after: MS * 5 });
    assert_eq!(one(RULES, BOUNDS, ticket(100, 0), stepped(MS * 5)), expected);
}

#[test]
fn the_wait_policy_waits_for_any_step_back() {
    let rules = Rules { rollback: Rollback::Wait, ..RULES };
    let hour = Duration::from_hours(1);
    let expected = Err(NotReady::ClockBehind { retry_after: hour });
    assert_eq!(one(rules, BOUNDS, ticket(100, 0), stepped(hour)), expected);
}

#[test]
fn waiting_and_refusing_end_when_real_time_has_caught_up() {
    for rollback in [Rollback::Wait, Rollback::Refuse] {
        let rules = Rules { rollback, ..RULES };
        assert_eq!(one(rules, BOUNDS, ticket(70, 0), stepped(Duration::ZERO)), Ok(ticket(80, 0)));
    }
}

#[test]
fn riding_goes_on_by_the_steady_line_and_keeps_all_other_rules() {
    let rules = Rules { rollback: Rollback::Ride, ..RULES };
    for behind in [Duration::ZERO, MS, Duration::from_hours(1)] {
        assert_eq!(one(rules, BOUNDS, ticket(100, 0), stepped(behind)), Ok(ticket(110, 0)));
    }
    // Real time has caught up and allows the next ticket: IDs are truthful again.
    let caught_up = stepped(Duration::ZERO);
    assert_eq!(one(rules, BOUNDS, ticket(70, 0), caught_up), Ok(ticket(80, 0)));
    assert_eq!(one(rules, BOUNDS, ticket(80, 2), caught_up), Ok(ticket(80, 3)));
    assert_eq!(one(rules, BOUNDS, ticket(80, 3), caught_up), Ok(ticket(110, 0)));
    // A tight loop cannot eat the horizon: the sequence of the tick is all there is.
    assert_eq!(one(rules, BOUNDS, ticket(110, 3), stepped(MS)), Err(exhausted(1_000)));
    let bounds = Bounds { horizon: 109, ..BOUNDS };
    let expected = Err(NotReady::Horizon { horizon: 109 });
    assert_eq!(one(rules, bounds, ticket(100, 0), stepped(MS)), expected);
}

#[test]
fn spread_opens_ticks_below_its_limit_with_every_value_and_by_worker() {
    let openings = |salt| {
        let rules = Rules { sequence_bits: 12, spread: 64, salt, ..RULES };
        let opening = |tick| one(rules, BOUNDS, 0, at(tick)).map(|first| first - (tick << 12));
        (1..=999).map(opening).collect::<Result<alloc::vec::Vec<_>, _>>().unwrap()
    };
    let (one, other) = (openings(1), openings(2));
    for value in 0..64 {
        let times = one.iter().filter(|opening| **opening == value).count();
        // 999 draws over 64 values: 15.6 on average.
        assert!((3..=40).contains(&times), "{value} came {times} times");
    }
    assert!(one.iter().all(|opening| *opening < 64));
    assert_ne!(one, other);
    // Fixed for ever, and computed outside of this code.
    assert_eq!(one[1..12], [45, 14, 26, 10, 23, 0, 36, 54, 29, 10, 63]);
}

#[test]
fn spread_does_not_touch_a_tick_that_is_open() {
    let rules = Rules { sequence_bits: 12, spread: 64, max_ahead: 1, ..RULES };
    let last = 100 << 12;
    assert_eq!(one(rules, BOUNDS, last, at(100)), Ok(last + 1));
    // Entered by carrying over, before its time and at its time.
    assert_eq!(one(rules, BOUNDS, (101 << 12) - 1, at(100)), Ok(101 << 12));
    assert_eq!(one(rules, BOUNDS, (101 << 12) - 1, at(101)), Ok(101 << 12));
}

#[test]
fn the_largest_exact_grant_is_one_that_spread_leaves_room_for() {
    let rules = Rules { sequence_bits: 12, spread: 64, ..RULES };
    let max = 4096 - 63;
    for tick in 1..=999 {
        assert!(step(&rules, BOUNDS, 0, at(tick), Ask::exactly(max)).is_ok());
    }
    let too_many = step(&rules, BOUNDS, 0, at(5), Ask::exactly(max + 1));
    assert_eq!(too_many, Err(NotReady::BatchTooLarge { max }));
}
