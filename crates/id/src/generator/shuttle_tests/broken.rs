//! The same check on issuing that looks right and is not: both ways to draw schedules catch it.

use std::panic;
use std::string::String;
use std::vec::Vec;

use shuttle::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};

use super::{FLOOR, HORIZON, Issuing, SEQUENCE_BITS, draw_pct, draw_random};

/// Draws schedules until one breaks a rule, which must be one of those.
fn caught<I: Issuing>(rules: &[&str]) {
    for draw in [draw_random::<I>, draw_pct::<I>] {
        let Err(panic) = panic::catch_unwind(draw) else {
            panic!("no schedule caught the broken variant");
        };
        let said = panic.downcast_ref::<String>().expect("a rule says what broke it");
        assert!(rules.iter().any(|rule| said.contains(rule)), "caught for another reason: {said}");
    }
}

/// The words of a generator, which its broken variants use in their ways.
struct Words {
    last: AtomicU64,
    horizon_end: AtomicU64,
    closed: AtomicBool,
}

impl Words {
    fn start() -> Self {
        Self {
            last: AtomicU64::new(first_after(FLOOR) - 1),
            horizon_end: AtomicU64::new(first_after(HORIZON)),
            closed: AtomicBool::new(false),
        }
    }

    fn raise(&self, horizon: u64) {
        self.horizon_end.fetch_max(first_after(horizon), SeqCst);
    }

    /// The right way to take a ticket from an open generator.
    fn take(&self) -> Option<u64> {
        let end = self.horizon_end.load(SeqCst);
        let taken =
            self.last.fetch_update(SeqCst, SeqCst, |last| (last + 1 < end).then_some(last + 1));
        taken.ok().map(|last| last + 1)
    }

    /// The right way to say what the last tick was.
    fn tick_of(&self, last: u64) -> u64 {
        (last >> SEQUENCE_BITS).min((self.horizon_end.load(SeqCst) >> SEQUENCE_BITS) - 1).max(FLOOR)
    }
}

fn first_after(tick: u64) -> u64 {
    (tick + 1) << SEQUENCE_BITS
}

/// Above every ticket, as the generator's is.
const CLOSED: u64 = 3 << 62;

/// Loads the word and stores it again instead of changing it at once.
struct LoadThenStore(Words);

impl Issuing for LoadThenStore {
    fn start() -> Self {
        Self(Words::start())
    }

    fn issue(&self, _: u32) -> Vec<u64> {
        let ticket = self.0.last.load(SeqCst) + 1;
        let fits = ticket < self.0.horizon_end.load(SeqCst);
        fits.then(|| self.0.last.store(ticket, SeqCst));
        fits.then_some(ticket).into_iter().collect()
    }

    fn raise(&self, horizon: u64) {
        self.0.raise(horizon);
    }

    fn close(&self) -> u64 {
        self.0.tick_of(self.0.last.swap(CLOSED, SeqCst))
    }
}

/// Has a flag for its end beside the word.
struct FlagBesideTheWord(Words);

impl Issuing for FlagBesideTheWord {
    fn start() -> Self {
        Self(Words::start())
    }

    fn issue(&self, n: u32) -> Vec<u64> {
        (0..n)
            .map_while(|_| if self.0.closed.load(SeqCst) { None } else { self.0.take() })
            .collect()
    }

    fn raise(&self, horizon: u64) {
        self.0.raise(horizon);
    }

    fn close(&self) -> u64 {
        self.0.closed.store(true, SeqCst);
        self.0.tick_of(self.0.last.load(SeqCst))
    }
}

/// Tests the horizon before the addition and not again after it.
struct TestedOnce(Words);

impl Issuing for TestedOnce {
    fn start() -> Self {
        Self(Words::start())
    }

    fn issue(&self, _: u32) -> Vec<u64> {
        let fits = self.0.last.load(SeqCst) + 1 < self.0.horizon_end.load(SeqCst);
        fits.then(|| self.0.last.fetch_add(1, SeqCst) + 1).into_iter().collect()
    }

    fn raise(&self, horizon: u64) {
        self.0.raise(horizon);
    }

    fn close(&self) -> u64 {
        self.0.tick_of(self.0.last.swap(CLOSED, SeqCst))
    }
}

/// Is closed at a word that an addition wraps around from.
struct WrapsAround(Words);

impl Issuing for WrapsAround {
    fn start() -> Self {
        Self(Words::start())
    }

    fn issue(&self, _: u32) -> Vec<u64> {
        let end = self.0.horizon_end.load(SeqCst);
        let fits = |ticket: u64| ticket < end;
        let open = self.0.last.load(SeqCst).checked_add(1).is_some_and(fits);
        let ticket = open.then(|| self.0.last.fetch_add(1, SeqCst).wrapping_add(1));
        ticket.filter(|ticket| fits(*ticket)).into_iter().collect()
    }

    fn raise(&self, horizon: u64) {
        self.0.raise(horizon);
    }

    fn close(&self) -> u64 {
        self.0.tick_of(self.0.last.swap(u64::MAX, SeqCst))
    }
}

#[test]
fn a_load_and_a_store_instead_of_one_change_are_caught() {
    caught::<LoadThenStore>(&["issued twice", "is not above", "after the close", "last tick"]);
}

#[test]
fn a_closed_flag_beside_the_word_is_caught() {
    caught::<FlagBesideTheWord>(&["above the last tick"]);
}

#[test]
fn a_horizon_that_is_not_tested_again_after_the_addition_is_caught() {
    caught::<TestedOnce>(&["past the horizon", "above the last tick"]);
}

#[test]
fn a_closed_state_that_an_addition_wraps_around_from_is_caught() {
    caught::<WrapsAround>(&["is not above", "after the close"]);
}
