//! The same check on keepers that look right and are not: both ways to draw schedules catch them.

use std::convert::Infallible;
use std::panic;

use super::{FLOOR, GeneratorSlot, Keeping, Ledger, Still, active, draw_pct, draw_random};
use crate::generator_slot::atomic_option::Ordering;

/// Draws schedules until one breaks a rule, which must be one of those.
fn caught<K: Keeping>(rules: &[&str]) {
    for draw in [draw_random::<K>, draw_pct::<K>] {
        let Err(panic) = panic::catch_unwind(draw) else {
            panic!("no schedule caught the broken variant");
        };
        let said = panic.downcast_ref::<String>().expect("a rule says what broke it");
        assert!(rules.iter().any(|rule| said.contains(rule)), "caught for another reason: {said}");
    }
}

/// Starts every generator above the first floor, and not above what was used.
struct WithoutTheFloor;

impl Keeping for WithoutTheFloor {
    fn replace(slot: &GeneratorSlot<Still>, token: u64, ledger: &Ledger) {
        let made: Result<(), Infallible> = slot.replace(|_| Ok(ledger.grant(active(token, FLOOR))));
        let Ok(()) = made;
    }
}

/// Asks for the last tick and puts the next generator in place, and leaves the old one open.
struct PublishesWithoutClosing;

impl Keeping for PublishesWithoutClosing {
    fn replace(slot: &GeneratorSlot<Still>, token: u64, ledger: &Ledger) {
        let last = slot.last_tick().max(FLOOR);
        slot.current.put(Some(ledger.grant(active(token, last))));
    }
}

/// Takes the generator away and does not close it.
struct TakesAway;

impl Keeping for TakesAway {
    fn close(slot: &GeneratorSlot<Still>) -> u64 {
        let last = slot.last_tick();
        slot.last_tick.fetch_max(last, Ordering::Relaxed);
        slot.ended.store(true, Ordering::Release);
        slot.current.put(None);
        last
    }
}

/// Raises a flag beside the generator's word, which goes on.
struct FlagBesideTheWord;

impl Keeping for FlagBesideTheWord {
    fn close(slot: &GeneratorSlot<Still>) -> u64 {
        slot.ended.store(true, Ordering::Release);
        slot.last_tick()
    }
}

/// Closes the generator and does not say that none comes after it.
struct LeavesThemWaiting;

impl Keeping for LeavesThemWaiting {
    fn close(slot: &GeneratorSlot<Still>) -> u64 {
        slot.close_current()
    }
}

#[test]
fn a_lane_without_the_floor_is_caught() {
    caught::<WithoutTheFloor>(&["issued twice", "is not above one before it"]);
}

#[test]
fn a_swap_that_leaves_the_old_one_open_is_caught() {
    caught::<PublishesWithoutClosing>(&["issued twice", "is not above one before it"]);
}

#[test]
fn a_generator_that_is_taken_away_and_not_closed_is_caught() {
    caught::<TakesAway>(&["above the last tick", "issued twice", "is not above one before it"]);
}

#[test]
fn an_end_that_only_a_flag_knows_is_caught() {
    caught::<FlagBesideTheWord>(&["after the close", "above the last tick"]);
}

#[test]
fn callers_who_wait_for_a_successor_that_never_comes_are_caught() {
    caught::<LeavesThemWaiting>(&["exceeded max_steps"]);
}
