//! The rules about lost ends: what they keep apart, and that it would not be without each.

use std::collections::BTreeMap;
use std::time::Duration;

use super::*;
use crate::lease::Choice;

const NOW: UnixMs = 10_000_000;
const WINDOW_MS: u64 = 600_000;

fn worker_claim() -> Claim {
    claim(Choice::Any { first: 0, last: 7, favourite: None }, WINDOW_MS)
}

fn leader_claim() -> Claim {
    claim(Choice::This(Slot::named(Group::Elections, "job").unwrap(), Version(0)), 0)
}

fn claim(choice: Choice, window_ms: u64) -> Claim {
    Claim {
        choice,
        nonce: Nonce::from_bits(7),
        holder: "me".into(),
        info: BTreeMap::new(),
        ttl: Duration::from_secs(30),
        now: NOW,
        ask: NOW + window_ms,
        window_ms,
        quarantine: 0,
        meta: Version(1),
    }
}

/// The history of a log that is synced once a second, which began then after another one.
fn capped(since: UnixMs, settled: UnixMs) -> History {
    History { id: "h2".into(), since, forked: 0, settled: Some(settled), is_capped: true }
}

/// A history that may lack anything, and began then.
fn forked(forked: UnixMs) -> History {
    History { id: "h2".into(), forked, ..History::default() }
}

fn record(horizon: UnixMs, released: bool) -> Record {
    Record {
        token: Token(1),
        nonce: (!released).then(|| Nonce::from_bits(7)),
        holder: "me".into(),
        floor: 0,
        horizon,
        renewed: 0,
        expires: Some(NOW),
        released,
        info: BTreeMap::new(),
    }
}

fn held(settling: Settling) -> Tenure {
    let mut tenure = tenure(
        Slot::worker(0),
        Nonce::from_bits(7),
        Version(1),
        record(NOW + WINDOW_MS, false),
        Nonce::from_bits(1),
    );
    (tenure.usable, tenure.settling) = (NOW + UNSETTLED_MS, settling);
    tenure
}

fn settling(history: &str, settles: bool, settled: UnixMs) -> Settling {
    Settling { history: history.into(), settles, settled, pending: Vec::new() }
}

#[test]
fn a_new_slot_starts_above_what_a_lost_acquisition_could_use() {
    let claim = worker_claim();
    // By a clock that was ahead, in the last moment before the server's own clock went back.
    let acquired = Claim { now: NOW + STORE_CLOCK_BACK_MS + CLOCK_BOUND_MS, ..claim.clone() };
    let lost = usable_at_first(acquired.now + WINDOW_MS, &acquired, false, &capped(0, 0));
    assert_eq!(lost, acquired.now + UNSETTLED_MS);
    assert!(floor_of(&Found::New, &claim, &capped(NOW, 0)) >= lost);
    assert_eq!(floor_of(&Found::New, &claim, &capped(NOW, 0)), NOW + 22_000, "as documented");
    assert!(floor_of(&Found::New, &claim, &History::default()) < lost, "the control");
    let lost = acquired.now + WINDOW_MS;
    assert!(floor_of(&Found::New, &claim, &forked(NOW)) >= lost);
    assert!(floor_of(&Found::New, &claim, &capped(NOW, 0)) < lost, "the control");
}

#[test]
fn a_worker_that_was_left_starts_above_what_a_lost_extension_could_use() {
    let (claim, history) = (worker_claim(), capped(NOW, 0));
    let kept = NOW + 300_000;
    let extended = usable_then(
        &held(settling("h1", true, kept)),
        &settling("h1", true, kept),
        WINDOW_MS,
        &capped(0, NOW),
        Some(NOW),
    );
    assert_eq!(extended, kept + UNSETTLED_MORE_MS);
    let left = Found::Known(record(kept, false));
    assert!(floor_of(&left, &claim, &history) >= extended);
    assert_eq!(floor_of(&left, &claim, &history), kept + 30_000, "as documented");
    assert!(floor_of(&left, &claim, &History::default()) < extended, "the control");
    let released = Found::Known(record(kept, true));
    assert_eq!(floor_of(&released, &claim, &history), kept, "its holder's last word");
}

#[test]
fn a_new_leader_waits_until_one_whose_claim_was_lost_has_given_up() {
    let claim = leader_claim();
    let gives_up = NOW + millis(claim.ttl);
    assert!(history_floor(&claim, &capped(NOW, 0)) >= gives_up);
    assert!(history_floor(&claim, &forked(NOW)) >= gives_up);
    assert_eq!(history_floor(&claim, &History::default()), 0);
}

#[test]
fn only_what_its_holder_did_not_release_must_settle_and_only_where_anything_does() {
    let claim = worker_claim();
    let settles = capped(0, 0);
    assert!(is_takeover(&Found::Known(record(NOW, false)), &claim, &settles));
    assert!(is_takeover(&Found::Lost, &claim, &settles));
    // What an operator freed or wrote has no holder's word either.
    let freed = Record { nonce: None, ..record(NOW, false) };
    assert!(is_takeover(&Found::Known(freed), &claim, &settles));
    assert!(!is_takeover(&Found::Known(record(NOW, true)), &claim, &settles));
    assert!(!is_takeover(&Found::New, &claim, &settles));
    for history in [History::default(), forked(0)] {
        assert!(!is_takeover(&Found::Known(record(NOW, false)), &claim, &history));
    }
    assert!(!is_takeover(&Found::Known(record(NOW, false)), &leader_claim(), &settles));
}

#[test]
fn a_free_slot_is_used_for_a_little_until_it_has_settled() {
    let (claim, horizon) = (worker_claim(), NOW + WINDOW_MS);
    assert_eq!(usable_at_first(horizon, &claim, false, &capped(0, 0)), NOW + UNSETTLED_MS);
    assert_eq!(usable_at_first(horizon, &claim, true, &capped(0, 0)), horizon);
    assert_eq!(usable_at_first(horizon, &claim, false, &forked(0)), horizon);
    assert_eq!(usable_at_first(horizon, &claim, false, &History::default()), horizon);
}

#[test]
fn a_clock_that_went_astray_since_is_not_followed_where_writes_are_lost() {
    let mut tenure = held(settling("h2", false, 0));
    tenure.horizon = NOW + 3_600_000 + WINDOW_MS;
    let usable =
        |history: &History| usable_then(&tenure, &tenure.settling, WINDOW_MS, history, Some(NOW));
    assert_eq!(usable(&forked(0)), NOW + CLOCK_BOUND_MS + WINDOW_MS);
    assert!(history_floor(&worker_claim(), &forked(NOW)) >= usable(&forked(0)));
    assert_eq!(usable(&History::default()), tenure.horizon, "nothing is lost there");
}

#[test]
fn what_may_be_used_never_falls() {
    let tenure = held(settling("h2", true, 0));
    let usable = usable_then(&tenure, &tenure.settling, WINDOW_MS, &capped(NOW, 0), Some(NOW));
    assert_eq!(usable, tenure.usable);
}

#[test]
fn a_holder_goes_on_where_no_takeover_can_be_missing() {
    let after = |history: &str, settles: bool, now: &History| {
        let tenure = Tenure { expires: Some(NOW), ..held(settling(history, settles, 0)) };
        goes_on(&tenure, now)
    };
    assert!(after("h2", false, &forked(NOW)), "the same history");
    assert!(after("h1", true, &capped(NOW + 99_000, 0)), "takeovers settle");
    assert!(after("h1", false, &forked(NOW - STORE_CLOCK_BACK_MS - 1)), "it was present");
    assert!(!after("h1", false, &forked(NOW - STORE_CLOCK_BACK_MS)));
    // Settled on a server whose replica was promoted without it.
    assert!(!after("h1", true, &forked(NOW)), "what had settled may be missing");
    let behind_sentinels = History { settled: Some(0), ..forked(NOW) };
    assert!(after("h1", true, &behind_sentinels), "all that could be promoted have it");
    assert!(!after("h1", false, &behind_sentinels), "takeovers of before did not wait");
}

#[test]
fn a_claim_stays_served_where_no_takeover_can_be_missing() {
    let record = record(NOW, false);
    assert!(is_served(&record, &History::default()));
    assert!(is_served(&record, &capped(NOW + 99_000, 0)));
    assert!(is_served(&record, &forked(NOW - STORE_CLOCK_BACK_MS - 1)));
    assert!(!is_served(&record, &forked(NOW)));
    let settles_since = History { settled: Some(0), ..forked(NOW) };
    assert!(!is_served(&record, &settles_since), "takeovers before that did not wait");
}

#[test]
fn what_was_acknowledged_settles_in_its_own_history_alone() {
    let first = Settling::default().after(&capped(0, 0), Some((100, NOW)));
    assert_eq!((first.settled, first.pending.len(), first.settles), (0, 1, true));
    assert_eq!(first.after(&capped(0, 99), None).settled, 0);
    let settled = first.after(&capped(0, 100), Some((200, NOW + 1)));
    assert_eq!((settled.settled, settled.pending.as_slice()), (NOW, &[(200, NOW + 1)][..]));
    // A later history does not prove that it was in time.
    let other = History { id: "h3".into(), ..capped(0, 900) };
    let later = settled.after(&other, None);
    assert_eq!((later.settled, later.pending.len()), (NOW, 0));
    assert!(first.after(&forked(0), Some((300, NOW))).pending.len() <= 1, "nothing settles there");
}

#[test]
fn horizons_that_never_settle_do_not_pile_up() {
    let mut settling = Settling::default();
    for turn in 0..100 {
        settling = settling.after(&capped(0, 0), Some((1000 + turn, NOW + turn)));
    }
    assert_eq!(settling.pending.len(), PENDING_MAX);
    assert_eq!(settling.pending.last(), Some(&(1099, NOW + 99)));
    // The oldest are still there to settle.
    assert_eq!(settling.after(&capped(0, 1000), None).settled, NOW);
}

#[test]
fn a_record_below_what_had_settled_was_set_back() {
    let tenure = held(settling("h1", true, NOW));
    let ask = Ask { horizon: NOW, ttl: Duration::from_secs(1), now: NOW, window_ms: WINDOW_MS };
    assert_eq!(extend(&record(NOW - 1, false), &tenure, &ask), Err(Loss::Regressed));
    let extended = extend(&record(NOW, false), &tenure, &ask).unwrap();
    assert_eq!(extended.horizon, tenure.horizon, "the holder repeats its own horizon");
}
