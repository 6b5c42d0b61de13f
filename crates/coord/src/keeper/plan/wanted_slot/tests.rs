use super::*;
use crate::nonce::Nonce;
use crate::record::Record;
use crate::slot::{Group, Slot};

const DELAY: Duration = Duration::from_secs(1);
const TTL: Duration = Duration::from_secs(10);
const RETRY: Duration = Duration::from_secs(100);
const AT_ONCE: Option<Duration> = Some(Duration::ZERO);

const fn at(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// A slot of a version: held, left with its mark, or given up.
fn slot(version: u64, presence: Presence, nonce: Option<Nonce>) -> Entry {
    let record = Record {
        token: Token(version),
        nonce,
        holder: "somebody".into(),
        floor: 0,
        horizon: 0,
        renewed: 0,
        expires: None,
        released: false,
        info: [].into(),
    };
    let slot = Slot::named(Group::Elections, "x").unwrap();
    Entry { slot, version: Version(version), found: Found::Known(record), presence }
}

fn held(version: u64) -> Entry {
    slot(version, Presence::Held { expires_in: None }, Some(Nonce::from_bits(1)))
}

fn left(version: u64) -> Entry {
    slot(version, Presence::Free, Some(Nonce::from_bits(1)))
}

fn released(version: u64) -> Entry {
    slot(version, Presence::Free, None)
}

/// What is waited for by one who sees this at once.
fn judge(wanted: &mut WantedSlot, entry: Option<&Entry>, seen: Duration, now: Duration) -> Wait {
    wanted.saw(entry, (seen, seen), AT_ONCE);
    wanted.wait(now, RETRY)
}

#[test]
fn nothing_is_claimed_before_the_store_was_looked_at() {
    let mut wanted = WantedSlot::new(DELAY, TTL);
    assert_eq!(wanted.wait(at(5), RETRY), Wait::ForALook);
    assert_eq!(judge(&mut wanted, None, at(4), at(5)), Wait::No(Version(0)));
}

#[test]
fn only_what_was_left_without_a_word_is_waited_for() {
    let mut wanted = WantedSlot::new(DELAY, TTL);
    assert_eq!(judge(&mut wanted, Some(&released(7)), at(4), at(4)), Wait::No(Version(7)));
    assert_eq!(judge(&mut wanted, Some(&left(8)), at(10), at(10)), Wait::For(DELAY));
    // Counted from when it was first seen, not from the last look.
    assert_eq!(judge(&mut wanted, Some(&left(8)), at(11), at(11)), Wait::No(Version(8)));
}

#[test]
fn a_leader_that_wakes_and_releases_does_not_shorten_the_wait() {
    let mut wanted = WantedSlot::new(at(20), TTL);
    assert_eq!(judge(&mut wanted, Some(&left(8)), at(10), at(10)), Wait::For(at(20)));
    // The same leader, whose mark is gone now: the version is new, the token is not.
    let late = Entry { version: Version(9), ..released(8) };
    assert_eq!(judge(&mut wanted, Some(&late), at(15), at(15)), Wait::For(at(15)));
    assert_eq!(judge(&mut wanted, Some(&late), at(15), at(30)), Wait::No(Version(9)));
    // Another leader that resigns is not waited for.
    assert_eq!(judge(&mut wanted, Some(&released(10)), at(31), at(31)), Wait::No(Version(10)));
}

#[test]
fn what_the_store_forgot_is_waited_for_as_long_as_it_may_be_believed() {
    let mut wanted = WantedSlot::new(DELAY, TTL);
    assert_eq!(judge(&mut wanted, Some(&held(7)), at(4), at(4)), Wait::ForAChange);
    assert_eq!(judge(&mut wanted, None, at(5), at(5)), Wait::For(TTL + DELAY));
    assert_eq!(judge(&mut wanted, None, at(5), at(5) + TTL + DELAY), Wait::No(Version(0)));
    // Work that checks tokens does not wait, and whoever never saw it cannot know.
    let mut fenced = WantedSlot::new(Duration::ZERO, TTL);
    judge(&mut fenced, Some(&held(7)), at(4), at(4));
    assert_eq!(judge(&mut fenced, None, at(5), at(5)), Wait::No(Version(0)));
    let mut newcomer = WantedSlot::new(DELAY, TTL);
    assert_eq!(judge(&mut newcomer, None, at(5), at(5)), Wait::No(Version(0)));
}

#[test]
fn a_leader_that_comes_back_in_between_is_left_alone() {
    let mut wanted = WantedSlot::new(DELAY, TTL);
    judge(&mut wanted, Some(&left(8)), at(10), at(10));
    assert_eq!(judge(&mut wanted, Some(&held(9)), at(11), at(11)), Wait::ForAChange);
    assert_eq!(judge(&mut wanted, Some(&left(9)), at(12), at(12)), Wait::For(DELAY));
}

#[test]
fn after_a_claim_in_vain_an_old_look_says_nothing() {
    let mut wanted = WantedSlot::new(Duration::ZERO, TTL);
    assert_eq!(judge(&mut wanted, Some(&released(7)), at(4), at(4)), Wait::No(Version(7)));
    wanted.look_again(at(5));
    assert_eq!(judge(&mut wanted, Some(&released(7)), at(4), at(6)), Wait::ForALook);
    assert_eq!(judge(&mut wanted, Some(&released(7)), at(6), at(7)), Wait::No(Version(7)));
}

#[test]
fn a_slot_that_is_held_is_looked_at_now_and_then() {
    let mut wanted = WantedSlot::new(DELAY, TTL);
    assert_eq!(judge(&mut wanted, Some(&held(7)), at(4), at(4)), Wait::ForAChange);
    assert_eq!(wanted.wait(at(4) + RETRY, RETRY), Wait::ForALook);
}

#[test]
fn the_pace_counts_from_the_vacancy_and_can_hold_back_for_good() {
    let mut wanted = WantedSlot::new(DELAY, TTL);
    wanted.saw(Some(&released(7)), (at(4), at(4)), Some(at(3)));
    assert_eq!(wanted.wait(at(5), RETRY), Wait::For(at(2)));
    assert_eq!(wanted.wait(at(7), RETRY), Wait::No(Version(7)));
    wanted.saw(Some(&released(7)), (at(4), at(4)), None);
    assert_eq!(wanted.wait(at(99), RETRY), Wait::ForAChange);
}
