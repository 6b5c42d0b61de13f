//! Jumps that are believed, and those that are not.

use super::*;

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3600);
/// Real time when the machine was booted.
const BOOTED: Duration = Duration::from_secs(1_800_000_000);

/// Real time that is right `boot` after the boot, and then off by so much.
fn look(boot: Duration, ahead: Duration, behind: Duration) -> Look {
    Look::new(boot, BOOTED + boot + ahead - behind, boot)
}

fn right(boot: Duration) -> Look {
    look(boot, Duration::ZERO, Duration::ZERO)
}

#[test]
fn a_jump_ahead_is_not_followed_and_its_end_is_no_step_back() {
    let belief = Belief::new(right(SECOND));
    assert_eq!(belief.judge(look(2 * SECOND, HOUR, Duration::ZERO)), BOOTED + 2 * SECOND);
    assert_eq!(belief.judge(look(9 * SECOND, HOUR, Duration::ZERO)), BOOTED + 9 * SECOND);
    assert_eq!(belief.judge(right(10 * SECOND)), BOOTED + 10 * SECOND);
}

#[test]
fn a_jump_ahead_that_lasts_is_the_truth() {
    let belief = Belief::new(right(SECOND));
    let jumped = |at: u32| look(at * SECOND, HOUR, Duration::ZERO);
    assert_eq!(belief.judge(jumped(2)), BOOTED + 2 * SECOND);
    assert_eq!(belief.judge(jumped(61)), BOOTED + 61 * SECOND);
    assert_eq!(belief.judge(jumped(62)), BOOTED + 62 * SECOND + HOUR);
    assert_eq!(belief.judge(jumped(63)), BOOTED + 63 * SECOND + HOUR);
}

#[test]
fn a_thread_that_is_held_up_when_a_jump_has_lasted_leaves_it_to_the_next() {
    let belief = Belief::new(right(SECOND));
    let jumped = |at: u32| look(at * SECOND, HOUR, Duration::ZERO);
    belief.judge(jumped(2));
    let held_up = Look::new(62 * SECOND, BOOTED + 62 * SECOND + HOUR, 63 * SECOND);
    assert_eq!(belief.judge(held_up), BOOTED + 63 * SECOND);
    for at in 64..70 {
        assert_eq!(belief.judge(jumped(at)), BOOTED + at * SECOND + HOUR);
    }
}

#[test]
fn jumps_that_come_and_go_never_add_up_to_one_that_lasts() {
    let belief = Belief::new(right(SECOND));
    for at in 1..200 {
        let jumped = belief.judge(look(2 * at * SECOND, HOUR, Duration::ZERO));
        assert_eq!(jumped, BOOTED + 2 * at * SECOND);
        belief.judge(right((2 * at + 1) * SECOND));
    }
}

#[test]
fn a_jump_to_yet_another_time_has_to_last_by_itself() {
    let belief = Belief::new(right(SECOND));
    belief.judge(look(2 * SECOND, Duration::ZERO, HOUR));
    belief.judge(look(61 * SECOND, Duration::ZERO, HOUR));
    assert_eq!(belief.judge(look(63 * SECOND, HOUR, Duration::ZERO)), BOOTED + 63 * SECOND);
    let further = belief.judge(look(124 * SECOND, 10 * HOUR, Duration::ZERO));
    assert_eq!(further, BOOTED + 124 * SECOND);
}

#[test]
fn the_end_of_a_jump_is_looked_at() {
    let belief = Belief::new(right(SECOND));
    belief.judge(look(2 * SECOND, HOUR, Duration::ZERO));
    assert!(!belief.covers(BOOTED + 2 * SECOND + Duration::from_millis(1)));
}

#[test]
fn a_step_back_is_seen_at_once_and_its_end_is_believed_at_once() {
    let belief = Belief::new(right(SECOND));
    let back = belief.judge(look(2 * SECOND, Duration::ZERO, HOUR));
    assert_eq!(back, BOOTED + 2 * SECOND - HOUR);
    assert_eq!(belief.judge(right(3 * SECOND)), BOOTED + 3 * SECOND);
}

#[test]
fn a_clock_that_is_slewed_is_followed() {
    let belief = Belief::new(right(SECOND));
    let mut ahead = Duration::ZERO;
    for at in 2..2000 {
        ahead += Duration::from_micros(500);
        let looked = look(at * SECOND, ahead, Duration::ZERO);
        assert_eq!(belief.judge(looked), BOOTED + at * SECOND + ahead);
    }
}

#[test]
fn a_thread_that_was_held_up_between_its_looks_sees_no_jump() {
    let belief = Belief::new(right(SECOND));
    for (boot_before, real, boot_after) in [(2, 12, 12), (12, 12, 22), (22, 27, 32)] {
        let real = BOOTED + real * SECOND;
        let looked = Look::new(boot_before * SECOND, real, boot_after * SECOND);
        assert_eq!(belief.judge(looked), real);
    }
}

#[test]
fn what_is_not_far_ahead_needs_no_look_at_boot_time() {
    let belief = Belief::new(right(SECOND));
    assert!(belief.covers(BOOTED + 2 * SECOND));
    assert!(!belief.covers(BOOTED + 4 * SECOND));
    belief.judge(right(4 * SECOND));
    assert!(belief.covers(BOOTED + 5 * SECOND));
    belief.judge(look(5 * SECOND, HOUR, Duration::ZERO));
    assert!(!belief.covers(BOOTED + HOUR));
}

/// Hears, at a boot time, that the store's clock shows what ours would if it were ahead by so much,
/// while ours is ahead by as much as the last argument says.
fn hear(belief: &Belief, boot: Duration, store_ahead: Duration, ahead: Duration) {
    belief.hear(store(boot, store_ahead), look(boot, ahead, Duration::ZERO));
}

/// The store's clock, asked a hundredth of a second before it was heard.
fn store(boot: Duration, ahead: Duration) -> StoreTime {
    let unix = u64::try_from((BOOTED + boot + ahead).as_millis()).unwrap();
    StoreTime { unix, asked: boot - SECOND / 100, answered: boot }
}

/// Where IDs go by at a boot time, if real time is ahead by so much: how far ahead they are.
fn ahead_at(belief: &Belief, boot: Duration, ahead: Duration) -> Duration {
    belief.judge(look(boot, ahead, Duration::ZERO)) - BOOTED - boot
}

#[test]
fn a_jump_to_what_the_store_has_shown_all_along_is_believed_at_once() {
    for jump in [3 * SECOND, HOUR] {
        let belief = Belief::new(right(SECOND));
        hear(&belief, 2 * SECOND, jump, Duration::ZERO);
        assert_eq!(ahead_at(&belief, 3 * SECOND, jump), Duration::ZERO);
        hear(&belief, 4 * SECOND, jump, jump);
        assert!(belief.covers(BOOTED + 4 * SECOND + jump), "without a further look");
        assert_eq!(ahead_at(&belief, 5 * SECOND, jump), jump);
    }
}

#[test]
fn a_jump_that_the_store_contradicts_has_to_last() {
    let belief = Belief::new(right(SECOND));
    for at in 2..62 {
        let ahead = if at < 4 { Duration::ZERO } else { HOUR };
        hear(&belief, at * SECOND, Duration::ZERO, ahead);
        assert_eq!(ahead_at(&belief, at * SECOND, ahead), Duration::ZERO, "after {at} s");
    }
    assert_eq!(ahead_at(&belief, 64 * SECOND, HOUR), HOUR);
}

#[test]
fn a_store_that_is_nearer_to_where_the_clock_was_confirms_nothing() {
    let (jump, nearer) = (Duration::from_millis(2100), Duration::from_millis(1000));
    let belief = Belief::new(right(SECOND));
    hear(&belief, 2 * SECOND, nearer, Duration::ZERO);
    hear(&belief, 3 * SECOND, nearer, jump);
    assert_eq!(ahead_at(&belief, 4 * SECOND, jump), Duration::ZERO);
}

/// A second of hearing, and a jump of an hour that the store makes too: as on one machine. How far
/// ahead IDs are a second later; `hear` is how the store is listened to.
fn jumps_together(hear: impl Fn(&Belief, Duration, Duration, Duration)) -> Duration {
    let belief = Belief::new(right(SECOND));
    hear(&belief, 2 * SECOND, Duration::ZERO, Duration::ZERO);
    for at in 3..6 {
        hear(&belief, at * SECOND, HOUR, HOUR);
    }
    ahead_at(&belief, 6 * SECOND, HOUR)
}

/// The broken variant: whoever shows the same time is believed.
fn hear_credulously(belief: &Belief, boot: Duration, store_ahead: Duration, ahead: Duration) {
    let look = look(boot, ahead, Duration::ZERO);
    if ClockOffset::new(store(boot, store_ahead)).is_near(look.offset_us()) {
        belief.believe(look);
    }
}

#[test]
fn a_store_whose_clock_jumps_along_is_no_witness() {
    assert_eq!(jumps_together(hear), Duration::ZERO);
    // The control: one that asks for no more than agreement is caught.
    assert_eq!(jumps_together(hear_credulously), HOUR);
}

#[test]
fn a_jump_together_with_the_store_is_believed_after_the_minute_as_any_other() {
    let belief = Belief::new(right(SECOND));
    hear(&belief, 2 * SECOND, Duration::ZERO, Duration::ZERO);
    for at in 3..63 {
        hear(&belief, at * SECOND, HOUR, HOUR);
        assert_eq!(ahead_at(&belief, at * SECOND, HOUR), Duration::ZERO, "after {at} s");
    }
    assert_eq!(ahead_at(&belief, 63 * SECOND, HOUR), HOUR);
}

#[test]
fn a_store_that_is_heard_only_after_the_jump_is_no_witness() {
    let belief = Belief::new(right(SECOND));
    assert_eq!(ahead_at(&belief, 2 * SECOND, HOUR), Duration::ZERO);
    for at in 3..60 {
        hear(&belief, at * SECOND, HOUR, HOUR);
        assert_eq!(ahead_at(&belief, at * SECOND, HOUR), Duration::ZERO, "after {at} s");
    }
    // Nor if it is the first to be heard of the jump.
    let belief = Belief::new(right(SECOND));
    hear(&belief, 3 * SECOND, HOUR, HOUR);
    assert_eq!(ahead_at(&belief, 4 * SECOND, HOUR), Duration::ZERO);
}

#[test]
fn a_store_whose_clock_jumped_first_speaks_for_ours_after_a_minute() {
    for (jumped_at, follows) in [(20, false), (61, false), (62, true)] {
        let belief = Belief::new(right(SECOND));
        hear(&belief, SECOND, Duration::ZERO, Duration::ZERO);
        for at in 2..jumped_at {
            hear(&belief, at * SECOND, HOUR, Duration::ZERO);
        }
        let at = jumped_at * SECOND;
        hear(&belief, at, HOUR, HOUR);
        let expected = if follows { HOUR } else { Duration::ZERO };
        assert_eq!(ahead_at(&belief, at, HOUR), expected, "after {jumped_at} s");
    }
}

#[test]
fn an_answer_that_took_long_says_nothing() {
    let belief = Belief::new(right(SECOND));
    hear(&belief, 2 * SECOND, HOUR, Duration::ZERO);
    let vague = |boot: Duration| StoreTime { asked: boot - SECOND, ..store(boot, HOUR) };
    belief.hear(vague(4 * SECOND), look(4 * SECOND, HOUR, Duration::ZERO));
    assert_eq!(ahead_at(&belief, 4 * SECOND, HOUR), Duration::ZERO);
    // And costs the store nothing.
    hear(&belief, 5 * SECOND, HOUR, HOUR);
    assert_eq!(ahead_at(&belief, 5 * SECOND, HOUR), HOUR);
}

#[test]
fn a_step_back_is_no_jump_that_a_store_could_confirm() {
    let belief = Belief::new(right(HOUR));
    let behind = |at: u32| look(HOUR + at * SECOND, Duration::ZERO, 10 * SECOND);
    let shown = |at: u32| StoreTime {
        unix: u64::try_from((BOOTED + HOUR + at * SECOND - 10 * SECOND).as_millis()).unwrap(),
        asked: HOUR + at * SECOND,
        answered: HOUR + at * SECOND,
    };
    belief.hear(shown(1), right(HOUR + SECOND));
    belief.hear(shown(2), behind(2));
    // Its end is no jump ahead.
    let ended = right(HOUR + 3 * SECOND);
    assert_eq!(belief.judge(ended), BOOTED + HOUR + 3 * SECOND);
}
