//! The renewal of a worker, and what becomes of the lane when it is lost.

use super::{BUDGET_MS, PlanFixture, START, error, meta, millis, seconds, setup, tenure};
use crate::error::ErrorKind;
use crate::keeper::Setup;
use crate::keeper::plan::{Effect, Next};
use crate::keeper::status::{ClockSkew, Judge, LeaseState, Waiting};
use crate::lease::{Acquired, Choice, Extended, Loss, Tenure};
use crate::record::{Token, Version};
use crate::rules::CLOCK_BOUND_MS;
use crate::store::Put;
use crate::timing::Timing;

pub(super) fn superseded() -> Loss {
    Loss::Superseded { token: Token(START + 1), holder: "other".into() }
}

#[test]
fn a_grant_is_what_the_store_acknowledged() {
    let mut plan_fixture = PlanFixture::met(setup());
    let claim = plan_fixture.claim();
    let held = tenure(&claim, 7, claim.ask - 1);
    let Effect::Open(grant) = plan_fixture.answer(&claim, Ok(Acquired::Held(held.clone()))) else {
        panic!("no grant");
    };
    assert_eq!((grant.worker, grant.token), (7, held.token));
    assert_eq!((grant.floor, grant.horizon), (held.floor, held.horizon));
    assert_eq!(plan_fixture.plan.status().grant, Some(grant));
    assert_eq!(plan_fixture.plan.status().state, LeaseState::Held);
}

#[test]
fn a_worker_is_renewed_every_heartbeat() {
    let mut plan_fixture = PlanFixture::holding();
    for renewals in 1..5 {
        assert_eq!(plan_fixture.pause(), seconds(10));
        plan_fixture.wait();
        plan_fixture.renew();
        assert_eq!(plan_fixture.plan.status().renewals, renewals);
    }
}

#[test]
fn the_window_grows_with_the_age_of_the_tenure() {
    let mut plan_fixture = PlanFixture::holding();
    for (age, window) in [(10, 32), (32, 32), (200, 200), (590, 590), (600, 600), (5000, 600)] {
        plan_fixture.now.boot = seconds(1000 + age);
        plan_fixture.now.unix = START + age * 1000;
        let ask = plan_fixture.renew();
        assert_eq!(ask.horizon, plan_fixture.now.unix + window * 1000, "at the age of {age} s");
        assert_eq!((ask.window_ms, ask.ttl), (BUDGET_MS, seconds(30)));
    }
}

#[test]
fn a_new_tenure_begins_with_a_small_window() {
    let mut plan_fixture = PlanFixture::holding();
    plan_fixture.pass(seconds(500));
    plan_fixture.extension();
    plan_fixture.extended(Ok(Extended::Lost(superseded())));
    let grant = plan_fixture.take(8);
    assert_eq!(grant.horizon, plan_fixture.now.unix + 32_000);
    plan_fixture.wait();
    assert_eq!(plan_fixture.renew().horizon, plan_fixture.now.unix + 32_000);
}

#[test]
fn a_horizon_that_was_not_acknowledged_is_never_used() {
    let mut plan_fixture = PlanFixture::holding();
    let granted = plan_fixture.plan.status().grant;
    for kind in [ErrorKind::Unknown, ErrorKind::Unavailable, ErrorKind::Denied] {
        plan_fixture.wait();
        plan_fixture.extension();
        assert_eq!(plan_fixture.extended(Err(error(kind))), Effect::None);
        assert_eq!(plan_fixture.plan.status().grant, granted);
    }
    plan_fixture.wait();
    let (tenure, ask) = plan_fixture.extension();
    let less = Tenure { horizon: ask.horizon - 7, usable: ask.horizon - 7, ..tenure };
    assert_eq!(plan_fixture.extended(Ok(Extended::Held(less))), Effect::Raise(ask.horizon - 7));
}

#[test]
fn a_clock_that_jumped_ahead_does_not_raise_what_is_asked_for() {
    let mut plan_fixture = PlanFixture::holding();
    let pause = plan_fixture.pause();
    plan_fixture.pass(pause);
    plan_fixture.now.unix += 3_600_000;
    // Clocks may run a thousandth fast.
    assert_eq!(plan_fixture.extension().1.horizon, START + 10_010 + 32_000);
    plan_fixture.pass(seconds(39));
    assert_eq!(
        plan_fixture.extension().1.horizon,
        START + 49_049 + 49_000,
        "as long as it has lived"
    );
    // It has lasted: a host that booted slow was set right.
    plan_fixture.pass(seconds(1));
    assert_eq!(plan_fixture.extension().1.horizon, plan_fixture.now.unix + 50_000);
}

#[test]
fn a_jump_that_lasts_is_asked_for_before_the_lane_follows_it() {
    // However seldom the lease is renewed: the lane follows after a minute.
    let timing = Timing { ttl: seconds(120), heartbeat: seconds(40), ..Timing::default() };
    let mut plan_fixture = PlanFixture::met(Setup { timing, ..setup() });
    plan_fixture.take(7);
    plan_fixture.pass(seconds(1));
    plan_fixture.now.unix += 3_600_000;
    let jumped = plan_fixture.now.boot;
    let mut raised = None;
    while raised.is_none() && plan_fixture.now.boot < jumped + seconds(60) {
        match plan_fixture.next() {
            Next::Extend(_, ask) if ask.horizon > plan_fixture.now.unix => {
                raised = Some(plan_fixture.now.boot)
            }
            Next::Extend(tenure, ask) => {
                let (horizon, usable) = (ask.horizon, ask.horizon);
                plan_fixture.extended(Ok(Extended::Held(Tenure { horizon, usable, ..tenure })));
            }
            _ => plan_fixture.pass(seconds(1)),
        }
    }
    let after = raised.expect("it is asked for within a minute") - jumped;
    assert!((seconds(40)..seconds(58)).contains(&after), "{after:?}");
}

#[test]
fn a_jump_that_the_stores_clock_confirms_is_believed_at_once() {
    let mut plan_fixture = PlanFixture::holding();
    plan_fixture.wait();
    plan_fixture.now.unix += 3_600_000;
    let (tenure, _) = plan_fixture.extension();
    let confirmed = Tenure { store_now: Some(plan_fixture.now.unix), ..tenure };
    plan_fixture.extended(Ok(Extended::Held(confirmed)));
    plan_fixture.wait();
    assert_eq!(plan_fixture.extension().1.horizon, plan_fixture.now.unix + 32_000);
}

#[test]
fn a_confirmed_jump_past_the_horizon_is_granted_at_once_and_only_then_can_the_lane_follow() {
    // The window is 32 s, and a heartbeat 10 s: what is left after 27 s does not last for one.
    for (jump_ms, reaches) in [(20_000, true), (27_000, false), (3_600_000, false)] {
        let mut plan_fixture = PlanFixture::holding();
        plan_fixture.wait();
        plan_fixture.now.unix += jump_ms;
        let confirm = |plan_fixture: &mut PlanFixture| {
            let (tenure, ask) = plan_fixture.extension();
            let store_now = Some(plan_fixture.now.unix);
            plan_fixture.extended(Ok(Extended::Held(Tenure {
                horizon: ask.horizon,
                usable: ask.horizon,
                store_now,
                ..tenure
            })));
            plan_fixture.plan.reaches(plan_fixture.now)
        };
        assert_eq!(confirm(&mut plan_fixture), reaches, "after a jump of {jump_ms} ms");
        if !reaches {
            assert_eq!(plan_fixture.pause(), millis(0), "asked for anew at once");
            assert!(confirm(&mut plan_fixture));
        }
        assert_eq!(plan_fixture.pause(), seconds(10), "and no more than that");
    }
}

#[test]
fn a_store_that_grants_nothing_after_a_confirmed_jump_is_not_pressed() {
    let mut plan_fixture = PlanFixture::holding();
    plan_fixture.wait();
    plan_fixture.now.unix += 3_600_000;
    for pause in [millis(0), seconds(10)] {
        let (tenure, _) = plan_fixture.extension();
        let same = Tenure { store_now: Some(plan_fixture.now.unix), ..tenure };
        plan_fixture.extended(Ok(Extended::Held(same)));
        assert!(!plan_fixture.plan.reaches(plan_fixture.now));
        assert_eq!(plan_fixture.pause(), pause);
    }
}

#[test]
fn times_that_run_ahead_of_the_clock_count() {
    let mut plan_fixture = PlanFixture::holding();
    plan_fixture.wait();
    plan_fixture.now.last = plan_fixture.now.unix + 900;
    assert_eq!(plan_fixture.extension().1.horizon, plan_fixture.now.last + 32_000);
}

#[test]
fn no_horizon_is_raised_by_a_clock_that_the_store_contradicts() {
    let mut plan_fixture = PlanFixture::holding();
    let granted = plan_fixture.plan.status().grant;
    plan_fixture.wait();
    let (tenure, ask) = plan_fixture.extension();
    let store_now = Some(plan_fixture.now.unix - CLOCK_BOUND_MS - 1);
    let held = Tenure { horizon: ask.horizon, usable: ask.horizon, store_now, ..tenure };
    assert_eq!(plan_fixture.extended(Ok(Extended::Held(held))), Effect::None);
    assert_eq!(plan_fixture.plan.status().grant, granted);
    let ahead_ms = i64::try_from(CLOCK_BOUND_MS + 1).unwrap();
    let skew = ClockSkew { ahead_ms, judge: Judge::Store };
    assert_eq!(plan_fixture.plan.status().state, LeaseState::Distrusted(skew));
    // Presence is renewed all the same, and once the clock is right the horizon is raised.
    plan_fixture.wait();
    plan_fixture.renew();
    assert_eq!(plan_fixture.plan.status().state, LeaseState::Held);
}

#[test]
fn failures_never_end_renewal() {
    let mut plan_fixture = PlanFixture::holding();
    let granted = plan_fixture.plan.status().grant;
    plan_fixture.wait();
    let mut pauses = Vec::new();
    for round in 0..200 {
        let kind = if round % 3 == 0 { ErrorKind::Denied } else { ErrorKind::Unavailable };
        plan_fixture.extension();
        assert_eq!(plan_fixture.extended(Err(error(kind))), Effect::None);
        assert_eq!(plan_fixture.plan.status().state, LeaseState::Unrenewed);
        assert_eq!(plan_fixture.plan.status().trouble, Some(error(kind)));
        assert_eq!(plan_fixture.plan.status().grant, granted, "it lasts until its horizon");
        pauses.push(plan_fixture.pause());
        plan_fixture.wait();
    }
    assert_eq!(pauses[..3], [millis(200), millis(400), millis(800)]);
    assert!(pauses[10..].iter().all(|pause| *pause == seconds(10)));
    plan_fixture.renew();
    assert_eq!(plan_fixture.plan.status().state, LeaseState::Held);
    assert_eq!(plan_fixture.plan.status().trouble, None);
    assert_eq!(plan_fixture.pause(), seconds(10));
}

#[test]
fn a_lost_worker_is_replaced_while_its_grant_lasts() {
    let loss = superseded();
    {
        let mut plan_fixture = PlanFixture::holding();
        let granted = plan_fixture.plan.status().grant;
        plan_fixture.wait();
        plan_fixture.extension();
        assert_eq!(plan_fixture.extended(Ok(Extended::Lost(loss.clone()))), Effect::None);
        let status = plan_fixture.plan.status();
        assert_eq!(status.state, LeaseState::Replacing(loss, Waiting::Answer));
        assert_eq!((status.grant, status.losses), (granted, 1));
        // At once, and not the one that somebody else has.
        let claim = plan_fixture.claim();
        let Choice::Any { favourite, .. } = claim.choice else { panic!("{claim:?}") };
        assert_eq!(favourite, None);
        let held = tenure(&claim, 8, claim.ask);
        assert!(matches!(plan_fixture.answer(&claim, Ok(Acquired::Held(held))), Effect::Open(_)));
        assert_eq!(plan_fixture.plan.status().grant.map(|grant| grant.worker), Some(8));
    }
}

#[test]
fn a_worker_that_an_operator_released_is_used_no_more() {
    let mut plan_fixture = PlanFixture::holding();
    plan_fixture.wait();
    plan_fixture.extension();
    assert_eq!(plan_fixture.extended(Ok(Extended::Lost(Loss::Released))), Effect::Close);
    plan_fixture.claim();
}

#[test]
fn a_worker_that_a_forgetful_store_gave_to_others_is_used_no_more() {
    let mut plan_fixture = PlanFixture::holding();
    let horizon = plan_fixture.plan.status().grant.unwrap().horizon;
    plan_fixture.wait();
    plan_fixture.extension();
    let loss = Loss::Overlapped { token: Token(START + 1), holder: "other".into() };
    // At once: both may use the same times.
    assert_eq!(plan_fixture.extended(Ok(Extended::Lost(loss.clone()))), Effect::Close);
    let status = plan_fixture.plan.status();
    assert_eq!((status.grant, status.losses), (None, 1));
    assert_eq!(status.state, LeaseState::Replacing(loss, Waiting::Answer));
    // What else the store has forgotten is unknown: nobody starts below what was promised here.
    plan_fixture.read(Ok(Some((4, meta()))));
    let (expected, draft) = plan_fixture.draft();
    assert_eq!((expected, draft.quarantine), (Some(Version(4)), horizon));
    plan_fixture.plan.meta_written(plan_fixture.now, Ok(Put::Done(Version(5))));
    plan_fixture.pass(millis(horizon - plan_fixture.now.unix));
    let claim = loop {
        match plan_fixture.next() {
            Next::Acquire(claim) => break claim,
            Next::ReadMeta => plan_fixture.read(Ok(Some((5, draft.clone())))),
            other => panic!("{other:?}"),
        }
    };
    let Choice::Any { favourite, .. } = claim.choice else { panic!("{claim:?}") };
    assert_eq!((claim.quarantine, favourite), (horizon, None));
}

#[test]
fn what_waiting_cannot_mend_is_waited_out_after_the_first_grant() {
    let mut plan_fixture = PlanFixture::holding();
    plan_fixture.wait();
    plan_fixture.extension();
    plan_fixture.extended(Ok(Extended::Lost(superseded())));
    let claim = plan_fixture.claim();
    plan_fixture.answer(&claim, Err(error(ErrorKind::Denied)));
    let waiting = Waiting::Store(ErrorKind::Denied);
    assert_eq!(plan_fixture.plan.status().state, LeaseState::Replacing(superseded(), waiting));
    plan_fixture.wait();
    plan_fixture.take(8);
}

#[test]
fn the_end_gives_what_is_held_and_nothing_happens_afterwards() {
    let mut plan_fixture = PlanFixture::holding();
    plan_fixture.wait();
    let (held, _) = plan_fixture.extension();
    plan_fixture.now.last = 77;
    assert_eq!(plan_fixture.end(), Some((held.clone(), 77)));
    assert_eq!(plan_fixture.plan.status().state, LeaseState::Released);
    // The answer to an extension that was under way comes too late.
    let late = Tenure { horizon: held.horizon + 1000, usable: held.horizon + 1000, ..held };
    assert_eq!(plan_fixture.extended(Ok(Extended::Held(late))), Effect::None);
    plan_fixture.plan.nudged(plan_fixture.now);
    plan_fixture.pass(seconds(1000));
    assert!(matches!(plan_fixture.next(), Next::Stop));
    assert_eq!(plan_fixture.end(), None, "released once");
}

#[test]
fn whoever_was_stopped_asks_the_store_at_once() {
    let mut plan_fixture = PlanFixture::holding();
    assert!(!plan_fixture.pause().is_zero());
    plan_fixture.plan.woken(plan_fixture.now);
    plan_fixture.extension();
    plan_fixture.extended(Ok(Extended::Lost(superseded())));
    let claim = plan_fixture.claim();
    plan_fixture.answer(&claim, Err(error(ErrorKind::Unavailable)));
    assert!(!plan_fixture.pause().is_zero());
    plan_fixture.pass(seconds(1));
    plan_fixture.plan.woken(plan_fixture.now);
    // Without a worker, but with times that may still be used.
    plan_fixture.read(Ok(Some((3, meta()))));
}
