//! The search for a worker: nothing is claimed twice, and nothing is given up for good.

use super::{PlanFixture, START, error, meta, millis, seconds, setup, tenure};
use crate::error::ErrorKind;
use crate::keeper::plan::{Effect, Next, Setup};
use crate::keeper::status::{ClockSkew, Judge, LeaseState, Refusal, Waiting};
use crate::lease::{Acquired, Census, Choice, Released, Tenure};
use crate::nonce::Nonce;
use crate::record::{Meta, Version};
use crate::rules::CLOCK_BOUND_MS;
use crate::slot::Slot;

fn full(blocked: u32, next_floor: Option<u64>) -> Acquired {
    Acquired::Full(Census { held: 3, blocked, poisoned: 0, next_floor })
}

#[test]
fn a_claim_says_all_that_the_store_must_know() {
    let mut plan_fixture = PlanFixture::new(Setup { favourite: Some(3), ..setup() });
    let (first_worker, last_worker) = (2, 9);
    plan_fixture.read(Ok(Some((6, Meta { first_worker, last_worker, ..meta() }))));
    let claim = plan_fixture.claim();
    assert_eq!(claim.choice, Choice::Any { first: 2, last: 9, favourite: Some(3) });
    assert_eq!((claim.holder.as_str(), claim.ttl), ("me", seconds(30)));
    assert_eq!((claim.now, claim.ask), (START, START + 32_000));
    assert_eq!((claim.meta, claim.window_ms), (Version(6), meta().window_ms));
    assert_eq!(claim.nonce, plan_fixture.now.nonce);
}

#[test]
fn a_claim_of_unknown_outcome_is_repeated_as_it_was() {
    let mut plan_fixture = PlanFixture::met(setup());
    let first = plan_fixture.claim();
    let mut last = first.clone();
    for kind in [ErrorKind::Unknown, ErrorKind::Unavailable, ErrorKind::Unknown] {
        assert_eq!(plan_fixture.answer(&last, Err(error(kind))), Effect::None);
        plan_fixture.wait();
        last = plan_fixture.claim();
        assert_eq!((&last.choice, last.nonce), (&first.choice, first.nonce));
    }
    assert!(last.now > first.now, "what is asked for follows the clock");
}

#[test]
fn a_slot_that_may_have_been_taken_is_asked_for_until_the_answer_is_definite() {
    let mut plan_fixture = PlanFixture::met(setup());
    let first = plan_fixture.claim();
    let unsure = Acquired::Unsure(Slot::worker(4), Version(11));
    plan_fixture.answer(&first, Ok(unsure));
    assert!(!plan_fixture.pause().is_zero(), "not in a tight loop");
    plan_fixture.wait();
    let pinned = Choice::This(Slot::worker(4), Version(11));
    let second = plan_fixture.claim();
    assert_eq!((&second.choice, second.nonce), (&pinned, first.nonce));
    // Meta moved meanwhile: that says nothing about the claim.
    plan_fixture.answer(&second, Ok(Acquired::MetaMoved));
    plan_fixture.read(Ok(Some((7, meta()))));
    let third = plan_fixture.claim();
    assert_eq!((&third.choice, third.nonce, third.meta), (&pinned, first.nonce, Version(7)));
    // Somebody else has it: so it never was ours.
    plan_fixture.answer(&third, Ok(Acquired::Taken));
    let fourth = plan_fixture.claim();
    assert!(matches!(fourth.choice, Choice::Any { .. }));
    assert_ne!(fourth.nonce, first.nonce);
}

#[test]
fn a_takeover_that_may_be_lost_is_repeated_and_says_what_it_waits_for() {
    let mut plan_fixture = PlanFixture::met(setup());
    let first = plan_fixture.claim();
    let why = error(ErrorKind::Unavailable);
    plan_fixture.answer(&first, Ok(Acquired::Unsettled(Slot::worker(4), Version(11), why.clone())));
    let status = plan_fixture.plan.status();
    assert_eq!(status.state, LeaseState::Seeking(Waiting::Settling(why.clone())));
    assert!(status.state.to_string().contains(&why.to_string()), "{}", status.state);
    assert_eq!(status.trouble, None, "the store answered");
    assert!(!plan_fixture.pause().is_zero(), "not in a tight loop");
    plan_fixture.wait();
    let again = plan_fixture.claim();
    let pinned = Choice::This(Slot::worker(4), Version(11));
    assert_eq!((again.choice, again.nonce), (pinned, first.nonce));
}

#[test]
fn a_claim_based_on_an_old_meta_reads_it_again() {
    let mut plan_fixture = PlanFixture::met(setup());
    let claim = plan_fixture.claim();
    plan_fixture.answer(&claim, Ok(Acquired::MetaMoved));
    plan_fixture.read(Ok(Some((4, Meta { last_worker: 5, ..meta() }))));
    let claim = plan_fixture.claim();
    assert_eq!(claim.meta, Version(4));
    assert_eq!(claim.choice, Choice::Any { first: 0, last: 5, favourite: None });
}

#[test]
fn a_full_pool_is_looked_at_again_when_a_floor_comes_near() {
    for (next_floor, pause) in [
        (None, millis(500)),
        (Some(START + 2300), millis(300)),
        (Some(START + 60_000), millis(500)),
        (Some(START + 1000), millis(50)),
    ] {
        let mut plan_fixture = PlanFixture::met(setup());
        let claim = plan_fixture.claim();
        plan_fixture.answer(&claim, Ok(full(0, next_floor)));
        assert_eq!(plan_fixture.pause(), pause, "{next_floor:?}");
        let census = Census { held: 3, blocked: 0, poisoned: 0, next_floor };
        assert_eq!(plan_fixture.plan.status().state, LeaseState::Seeking(Waiting::Pool(census)));
        plan_fixture.wait();
        assert_ne!(plan_fixture.claim().nonce, claim.nonce);
    }
}

#[test]
fn a_pool_that_stays_full_is_asked_less_often() {
    let mut plan_fixture = PlanFixture::met(setup());
    for pause in [500, 1000, 2000, 4000, 5000, 5000, 5000] {
        let claim = plan_fixture.claim();
        plan_fixture.answer(&claim, Ok(full(0, None)));
        assert_eq!(plan_fixture.pause(), millis(pause));
        plan_fixture.wait();
    }
    // A floor that comes near is not missed all the same.
    let claim = plan_fixture.claim();
    let floor = Some(plan_fixture.now.unix + 2300);
    plan_fixture.answer(&claim, Ok(full(0, floor)));
    assert_eq!(plan_fixture.pause(), millis(300));
    // The next time begins anew.
    plan_fixture.wait();
    plan_fixture.take(4);
    plan_fixture.wait();
    plan_fixture.extension();
    plan_fixture.extended(Ok(crate::lease::Extended::Lost(super::holding::superseded())));
    let claim = plan_fixture.claim();
    plan_fixture.answer(&claim, Ok(full(0, None)));
    assert_eq!(plan_fixture.pause(), millis(500));
}

#[test]
fn a_full_pool_is_looked_at_as_soon_as_something_changes() {
    let mut plan_fixture = PlanFixture::met(setup());
    let claim = plan_fixture.claim();
    plan_fixture.answer(&claim, Ok(full(0, None)));
    plan_fixture.plan.nudged(plan_fixture.now);
    plan_fixture.claim();
}

#[test]
fn a_nudge_does_not_shorten_the_pause_after_a_failure() {
    let mut plan_fixture = PlanFixture::met(setup());
    let claim = plan_fixture.claim();
    plan_fixture.answer(&claim, Err(error(ErrorKind::Unavailable)));
    plan_fixture.plan.nudged(plan_fixture.now);
    assert!(!plan_fixture.pause().is_zero());
}

#[test]
fn a_pool_with_blocked_workers_is_mended_at_most_once_a_minute() {
    let mut plan_fixture = PlanFixture::met(setup());
    let mut mended_at = Vec::new();
    for _ in 0..400 {
        match plan_fixture.next() {
            Next::Acquire(claim) => {
                plan_fixture.answer(&claim, Ok(full(1, None)));
            }
            Next::Repair(_) => {
                mended_at.push(plan_fixture.now.boot);
                plan_fixture.plan.repaired();
            }
            Next::Wait(_) => plan_fixture.wait(),
            other => panic!("{other:?}"),
        }
    }
    assert!(mended_at.len() > 1, "lost records block their slots for ever");
    assert!(mended_at.is_sorted_by(|a, b| *a + seconds(60) <= *b), "{mended_at:?}");
}

#[test]
fn a_pool_without_blocked_workers_is_not_mended() {
    let mut plan_fixture = PlanFixture::met(setup());
    let claim = plan_fixture.claim();
    plan_fixture.answer(&claim, Ok(full(0, None)));
    assert!(matches!(plan_fixture.next(), Next::Wait(_)));
}

#[test]
fn a_worker_is_given_back_when_the_clock_differs_from_the_stores() {
    let bound = i64::try_from(CLOCK_BOUND_MS).unwrap();
    for (ahead, trusted) in
        [(0, true), (bound, true), (-bound, true), (bound + 1, false), (-bound - 1, false)]
    {
        let mut plan_fixture = PlanFixture::met(setup());
        let claim = plan_fixture.claim();
        let store_now = Some(START.checked_add_signed(-ahead).unwrap());
        let held = Tenure { store_now, ..tenure(&claim, 2, claim.ask) };
        let effect = plan_fixture.answer(&claim, Ok(Acquired::Held(held.clone())));
        assert_eq!(matches!(effect, Effect::Open(_)), trusted, "{ahead} ms ahead");
        if trusted {
            continue;
        }
        assert_eq!(effect, Effect::None);
        let waiting = Waiting::Clock(ClockSkew { ahead_ms: ahead, judge: Judge::Store });
        assert_eq!(plan_fixture.plan.status().state, LeaseState::Seeking(waiting));
        assert_eq!(plan_fixture.plan.status().grant, None);
        assert!(
            matches!(plan_fixture.next(), Next::Release(back, last) if back == held && last == held.floor)
        );
        plan_fixture.plan.released(plan_fixture.now, &Ok(Released::Done));
        assert_eq!(plan_fixture.pause(), seconds(10));
        plan_fixture.wait();
        plan_fixture.take(2);
        assert_eq!(plan_fixture.plan.status().state, LeaseState::Held);
    }
}

#[test]
fn what_cannot_be_mended_by_waiting_is_refused_before_the_first_grant() {
    for kind in [
        ErrorKind::Denied,
        ErrorKind::InvalidConfig,
        ErrorKind::Corrupt,
        ErrorKind::NewerFormat,
        ErrorKind::Unsafe,
    ] {
        let mut plan_fixture = PlanFixture::met(setup());
        let claim = plan_fixture.claim();
        plan_fixture.answer(&claim, Err(error(kind)));
        let refusal = Refusal::Store(error(kind));
        assert_eq!(plan_fixture.plan.status().state, LeaseState::Refused(refusal.clone()));
        assert!(matches!(plan_fixture.next(), Next::Stop));
        assert_eq!(plan_fixture.end(), None);
        assert_eq!(
            plan_fixture.plan.status().state,
            LeaseState::Refused(refusal),
            "it stays to be read"
        );
    }
}

#[test]
fn a_tenure_that_a_repeated_claim_finds_is_extended_at_once() {
    let mut plan_fixture = PlanFixture::met(setup());
    let first = plan_fixture.claim();
    plan_fixture.answer(&first, Err(error(ErrorKind::Unknown)));
    plan_fixture.pass(seconds(80));
    let again = plan_fixture.claim();
    let found = tenure(&first, 6, first.ask);
    let effect = plan_fixture.answer(&again, Ok(Acquired::Held(found)));
    assert!(matches!(effect, Effect::Open(grant) if grant.horizon == first.ask));
    assert_eq!(plan_fixture.extension().1.horizon, plan_fixture.now.unix + 32_000);
}

#[test]
fn a_slot_that_is_no_worker_is_given_back() {
    let mut plan_fixture = PlanFixture::met(setup());
    let claim = plan_fixture.claim();
    let slot = Slot::named(crate::slot::Group::Scopes, "orders").unwrap();
    let held = Tenure { slot, ..tenure(&claim, 0, claim.ask) };
    assert_eq!(plan_fixture.answer(&claim, Ok(Acquired::Held(held))), Effect::None);
    assert!(matches!(plan_fixture.next(), Next::Release(..)));
}

#[test]
fn pauses_grow_up_to_a_heartbeat_and_differ_between_nodes() {
    for (chance, eighths) in [(0, 8), (128, 7)] {
        let mut plan_fixture = PlanFixture::met(setup());
        plan_fixture.now.nonce = Nonce::from_bits(chance);
        let mut claim = plan_fixture.claim();
        for full_pause in [200, 400, 800, 1600, 3200, 6400, 10_000, 10_000, 10_000, 10_000, 10_000]
        {
            plan_fixture.answer(&claim, Err(error(ErrorKind::Unavailable)));
            assert_eq!(plan_fixture.pause(), millis(full_pause * eighths / 8));
            plan_fixture.wait();
            claim = plan_fixture.claim();
        }
        // An answer, whatever it says, ends the trouble.
        plan_fixture.answer(&claim, Ok(full(0, None)));
        assert_eq!(plan_fixture.plan.status().trouble, None);
    }
}

#[test]
fn nothing_is_released_that_was_not_held() {
    let mut plan_fixture = PlanFixture::met(setup());
    plan_fixture.claim();
    assert_eq!(plan_fixture.end(), None);
    assert_eq!(plan_fixture.plan.status().state, LeaseState::Released);
    assert!(matches!(plan_fixture.next(), Next::Stop));
}

#[test]
fn a_worker_that_was_never_used_is_released_at_the_end_too() {
    let mut plan_fixture = PlanFixture::met(setup());
    let claim = plan_fixture.claim();
    let held = Tenure { store_now: Some(START - 60_000), ..tenure(&claim, 2, claim.ask) };
    plan_fixture.answer(&claim, Ok(Acquired::Held(held.clone())));
    assert_eq!(plan_fixture.end(), Some((held.clone(), held.floor)));
}

#[test]
fn the_old_reason_stays_while_another_worker_is_waited_for() {
    let mut plan_fixture = PlanFixture::holding();
    plan_fixture.wait();
    plan_fixture.extension();
    let loss = super::holding::superseded();
    plan_fixture.extended(Ok(crate::lease::Extended::Lost(loss.clone())));
    let claim = plan_fixture.claim();
    plan_fixture.answer(&claim, Ok(full(0, None)));
    let census = Census { held: 3, ..Census::default() };
    assert_eq!(
        plan_fixture.plan.status().state,
        LeaseState::Replacing(loss, Waiting::Pool(census))
    );
}
