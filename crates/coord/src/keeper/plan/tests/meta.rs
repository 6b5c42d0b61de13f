//! Agreeing on a namespace, and what is owed to one that was forgotten.

use super::{BUDGET_MS, PlanFixture, START, error, meta, millis, seconds, setup, tenure};
use crate::error::ErrorKind;
use crate::keeper::plan::{Effect, Next};
use crate::keeper::status::{LeaseState, Refusal, Waiting};
use crate::keeper::{FirstUse, Setup};
use crate::lease::{Acquired, Extended, Loss, Released, Tenure};
use crate::nonce::Nonce;
use crate::record::{Meta, Version, Versioned};
use crate::store::{Look, Put};
use crate::timing::Timing;

#[test]
fn a_namespace_is_used_for_the_first_time_when_it_is_known_to_be_new() {
    let after_window = START + BUDGET_MS + 2000;
    for (first_use, orphans, quarantine) in [
        (FirstUse::AtOnce, false, 0),
        (FirstUse::AfterSilence, false, START + 19_000),
        (FirstUse::AfterWindow, false, after_window),
        // Records without meta: whoever wrote them may live.
        (FirstUse::AtOnce, true, after_window),
        (FirstUse::AfterSilence, true, after_window),
    ] {
        let mut plan_fixture = PlanFixture::new(Setup { first_use, ..setup() });
        assert!(matches!(plan_fixture.next(), Next::ReadMeta));
        plan_fixture.plan.meta_read(plan_fixture.now, Ok(Look::default()), orphans);
        let (expected, draft) = plan_fixture.draft();
        assert_eq!((expected, draft.quarantine), (None, quarantine), "{first_use:?} {orphans}");
        assert_eq!((draft.first_worker, draft.last_worker), (0, 1023));
        assert_eq!((draft.window_ms, draft.created), (BUDGET_MS, START));
    }
}

#[test]
fn a_namespace_that_only_elections_used_is_filled_in() {
    let blank = Meta { quarantine: 77, ..Meta::blank(Nonce::from_bits(5), 99) };
    for (orphans, quarantine) in [(false, 77), (true, START + BUDGET_MS + 2000)] {
        let mut plan_fixture = PlanFixture::new(Setup { first_use: FirstUse::AtOnce, ..setup() });
        assert!(matches!(plan_fixture.next(), Next::ReadMeta));
        let read = Versioned { version: Version(8), value: blank.clone() };
        let look = Look { meta: Some(read), ..Look::default() };
        plan_fixture.plan.meta_read(plan_fixture.now, Ok(look), orphans);
        let (expected, draft) = plan_fixture.draft();
        assert_eq!((expected, draft.quarantine), (Some(Version(8)), quarantine));
        assert_eq!((draft.incarnation, draft.created), (blank.incarnation, blank.created));
        assert_eq!((draft.layout, draft.window_ms), (setup().layout, BUDGET_MS));
    }
}

#[test]
fn what_was_written_is_used_without_reading_it_again() {
    let mut plan_fixture = PlanFixture::new(setup());
    plan_fixture.read(Ok(None));
    let (_, draft) = plan_fixture.draft();
    plan_fixture.plan.meta_written(plan_fixture.now, Ok(Put::Done(Version(5))));
    let claim = plan_fixture.claim();
    assert_eq!((claim.meta, claim.window_ms), (Version(5), draft.window_ms));
}

#[test]
fn whoever_comes_second_takes_what_the_first_wrote() {
    let mut plan_fixture = PlanFixture::new(setup());
    plan_fixture.read(Ok(None));
    plan_fixture.draft();
    plan_fixture.plan.meta_written(plan_fixture.now, Ok(Put::Conflict));
    plan_fixture.read(Ok(Some((8, meta()))));
    assert_eq!(plan_fixture.claim().meta, Version(8));
}

#[test]
fn a_draft_that_could_not_be_written_is_made_anew() {
    let mut plan_fixture = PlanFixture::new(Setup { first_use: FirstUse::AfterSilence, ..setup() });
    plan_fixture.read(Ok(None));
    plan_fixture.draft();
    for kind in [ErrorKind::Unavailable, ErrorKind::Unknown] {
        plan_fixture.plan.meta_written(plan_fixture.now, Err(error(kind)));
        plan_fixture.pass(seconds(300));
        plan_fixture.read(Ok(None));
        let now = plan_fixture.now.unix;
        assert_eq!(plan_fixture.draft().1.quarantine, now + 19_000, "counted from an old time");
    }
}

#[test]
fn another_layout_is_refused() {
    let mut plan_fixture = PlanFixture::new(setup());
    plan_fixture.read(Ok(Some((1, Meta { layout: "other".into(), ..meta() }))));
    let refusal = Refusal::OtherLayout { here: "layout".into(), there: "other".into() };
    assert_eq!(plan_fixture.plan.status().state, LeaseState::Refused(refusal));
    assert!(matches!(plan_fixture.next(), Next::Stop));
}

#[test]
fn a_namespace_that_came_to_mean_something_else_ends_the_lease_at_once() {
    // Disjoint times keep IDs apart only under one layout, and disjoint tenures only among the same
    // workers: what was granted before counts for nothing in such a namespace.
    let other_layout = Meta { layout: "other".into(), ..meta() };
    let other_workers = Meta { last_worker: 5000, ..meta() };
    for there in [other_layout, other_workers] {
        let mut plan_fixture = PlanFixture::holding();
        plan_fixture.wait();
        plan_fixture.extension();
        plan_fixture.extended(Ok(Extended::Lost(Loss::Vanished)));
        assert!(plan_fixture.plan.status().grant.is_some());
        plan_fixture.read(Ok(Some((4, there))));
        assert!(matches!(plan_fixture.plan.status().state, LeaseState::Refused(_)));
        assert_eq!(plan_fixture.plan.status().grant, None);
        // The driver closes the lane when there is nothing more to do.
        assert!(matches!(plan_fixture.next(), Next::Stop));
        assert_eq!(plan_fixture.end(), None);
    }
}

#[test]
fn another_range_of_workers_is_refused() {
    for (here, there, fits) in [
        (None, (0, 1023), true),
        (None, (5, 9), true),
        (Some((5, 9)), (5, 9), true),
        (Some((5, 9)), (5, 10), false),
        (Some((4, 9)), (5, 9), false),
        // More than the layout has.
        (None, (0, 1024), false),
        (None, (9, 5), false),
    ] {
        let mut plan_fixture = PlanFixture::new(Setup { workers: here, ..setup() });
        let (first_worker, last_worker) = there;
        plan_fixture.read(Ok(Some((1, Meta { first_worker, last_worker, ..meta() }))));
        let refused = matches!(
            plan_fixture.plan.status().state,
            LeaseState::Refused(Refusal::OtherWorkers { there: named, .. }) if named == there
        );
        assert_eq!(refused, !fits, "{here:?} in {there:?}");
    }
}

#[test]
fn a_quarantine_is_waited_for_and_looked_at_again() {
    let mut plan_fixture = PlanFixture::new(setup());
    let until = START + 25_000;
    plan_fixture.read(Ok(Some((1, Meta { quarantine: until, ..meta() }))));
    assert_eq!(plan_fixture.pause(), seconds(10), "no longer than a heartbeat: it may be raised");
    assert_eq!(
        plan_fixture.plan.status().state,
        LeaseState::Seeking(Waiting::Quarantine { until })
    );
    plan_fixture.wait();
    plan_fixture.read(Ok(Some((2, Meta { quarantine: until, ..meta() }))));
    plan_fixture.wait();
    plan_fixture.read(Ok(Some((2, Meta { quarantine: until, ..meta() }))));
    assert_eq!(plan_fixture.pause(), seconds(3), "times may run ahead by two seconds");
    plan_fixture.wait();
    plan_fixture.read(Ok(Some((2, Meta { quarantine: until, ..meta() }))));
    let claim = plan_fixture.claim();
    assert_eq!((claim.quarantine, claim.meta), (until, Version(2)));
}

#[test]
fn a_quarantine_that_is_plainly_wrong_is_told_as_such_until_it_is_brought_down() {
    let mut plan_fixture = PlanFixture::new(setup());
    let until = START + 365 * 86_400_000;
    plan_fixture.read(Ok(Some((1, Meta { quarantine: until, ..meta() }))));
    assert_eq!(plan_fixture.pause(), seconds(10), "it may be brought down at any moment");
    let told = Waiting::WrongTimes { until, ahead_hours: 8760 };
    assert_eq!(plan_fixture.plan.status().state, LeaseState::Seeking(told));
    plan_fixture.wait();
    plan_fixture.read(Ok(Some((2, meta()))));
    assert_eq!(plan_fixture.claim().meta, Version(2));
    // An hour is what the longest window may take.
    let mut plan_fixture = PlanFixture::new(setup());
    let until = START + crate::rules::WINDOW_MAX_MS;
    plan_fixture.read(Ok(Some((1, Meta { quarantine: until, ..meta() }))));
    plan_fixture.pause();
    assert_eq!(
        plan_fixture.plan.status().state,
        LeaseState::Seeking(Waiting::Quarantine { until })
    );
}

#[test]
fn a_forgotten_record_raises_the_quarantine_before_anything_is_acquired() {
    let mut plan_fixture = PlanFixture::holding();
    let horizon = plan_fixture.plan.status().grant.unwrap().horizon;
    plan_fixture.wait();
    plan_fixture.extension();
    let effect = plan_fixture.extended(Ok(Extended::Lost(Loss::Vanished)));
    assert_eq!(effect, Effect::None, "what was granted may be used up");
    plan_fixture.read(Ok(Some((4, meta()))));
    let (expected, draft) = plan_fixture.draft();
    assert_eq!((expected, draft.quarantine), (Some(Version(4)), horizon));
    // Somebody else was faster, but not far enough.
    plan_fixture.plan.meta_written(plan_fixture.now, Ok(Put::Conflict));
    plan_fixture.read(Ok(Some((5, Meta { quarantine: horizon - 1, ..meta() }))));
    assert_eq!(plan_fixture.draft().0, Some(Version(5)));
    plan_fixture.plan.meta_written(plan_fixture.now, Ok(Put::Done(Version(6))));
    assert!(!plan_fixture.pause().is_zero(), "the quarantine holds for the one who raised it too");
}

#[test]
fn a_second_wipe_while_a_worker_is_sought_raises_the_quarantine_again() {
    let mut plan_fixture = PlanFixture::holding();
    let horizon = plan_fixture.plan.status().grant.unwrap().horizon;
    plan_fixture.wait();
    plan_fixture.extension();
    plan_fixture.extended(Ok(Extended::Lost(Loss::Vanished)));
    for (version, bits) in [(4, 2), (1, 3)] {
        let created = Meta { incarnation: Nonce::from_bits(bits), ..meta() };
        plan_fixture.read(Ok(Some((version, created.clone()))));
        let (expected, draft) = plan_fixture.draft();
        assert_eq!(expected, Some(Version(version)));
        assert_eq!(draft, Meta { quarantine: horizon, ..created });
        plan_fixture.plan.meta_written(plan_fixture.now, Ok(Put::Done(Version(version + 1))));
        assert!(!plan_fixture.pause().is_zero(), "the quarantine holds");
        plan_fixture.wait();
    }
}

#[test]
fn a_wiped_store_is_noticed_within_seconds_whatever_the_heartbeat() {
    let slow =
        Timing { ttl: seconds(120), heartbeat: seconds(40), outage_budget: millis(BUDGET_MS) };
    for created in [None, Some(Meta { incarnation: Nonce::from_bits(2), ..meta() })] {
        let mut plan_fixture = PlanFixture::met(Setup { timing: slow, ..setup() });
        let horizon = plan_fixture.take(7).horizon;
        let began = plan_fixture.now.boot;
        loop {
            match plan_fixture.plan.next(plan_fixture.now) {
                Next::Wait(until) => plan_fixture.pass(until - plan_fixture.now.boot),
                Next::Look => plan_fixture.plan.looked(plan_fixture.now, Ok(Vec::new())),
                Next::ReadMeta => break,
                other => panic!("wanted to read meta, got {other:?}"),
            }
        }
        assert!(
            plan_fixture.now.boot - began <= seconds(10),
            "{:?}",
            plan_fixture.now.boot - began
        );
        let read = created.map(|value| Versioned { version: Version(1), value });
        let look = Look { meta: read, ..Look::default() };
        assert_eq!(
            plan_fixture.plan.meta_read(plan_fixture.now, Ok(look), false),
            Some(Loss::Vanished)
        );
        assert!(matches!(
            plan_fixture.plan.status().state,
            LeaseState::Replacing(Loss::Vanished, _)
        ));
        assert!(plan_fixture.draft().1.quarantine >= horizon);
    }
}

#[test]
fn a_quarantine_that_is_high_enough_is_left_alone() {
    let mut plan_fixture = PlanFixture::holding();
    let horizon = plan_fixture.plan.status().grant.unwrap().horizon;
    plan_fixture.wait();
    plan_fixture.extension();
    plan_fixture.extended(Ok(Extended::Lost(Loss::Regressed)));
    plan_fixture.read(Ok(Some((4, Meta { quarantine: horizon, ..meta() }))));
    assert!(matches!(plan_fixture.next(), Next::Wait(_)));
}

#[test]
fn a_forgotten_namespace_is_created_anew_above_all_that_was_promised() {
    // Even where a new namespace would be used at once.
    let mut plan_fixture = PlanFixture::holding();
    plan_fixture.wait();
    plan_fixture.extension();
    plan_fixture.extended(Ok(Extended::Lost(Loss::Vanished)));
    plan_fixture.read(Ok(None));
    let (expected, draft) = plan_fixture.draft();
    assert_eq!(expected, None);
    assert_eq!(draft.quarantine, plan_fixture.now.unix + BUDGET_MS + 2000, "a window and a little");
}

#[test]
fn a_horizon_beyond_the_window_is_kept_in_a_namespace_created_anew() {
    let mut plan_fixture = PlanFixture::holding();
    plan_fixture.wait();
    let (tenure, _) = plan_fixture.extension();
    let far = plan_fixture.now.unix + 2 * BUDGET_MS;
    let tenure = crate::lease::Tenure { horizon: far, usable: far, ..tenure };
    plan_fixture.extended(Ok(Extended::Held(tenure)));
    plan_fixture.wait();
    plan_fixture.extension();
    plan_fixture.extended(Ok(Extended::Lost(Loss::Vanished)));
    plan_fixture.read(Ok(None));
    assert_eq!(plan_fixture.draft().1.quarantine, far);
}

#[test]
fn meta_that_cannot_be_read_is_read_again() {
    let mut plan_fixture = PlanFixture::new(setup());
    plan_fixture.read(Err(error(ErrorKind::Unavailable)));
    let waiting = Waiting::Store(ErrorKind::Unavailable);
    assert_eq!(plan_fixture.plan.status().state, LeaseState::Seeking(waiting));
    assert_eq!(plan_fixture.plan.status().trouble, Some(error(ErrorKind::Unavailable)));
    plan_fixture.wait();
    plan_fixture.read(Ok(Some((1, meta()))));
    assert_eq!(plan_fixture.plan.status().trouble, None);
    plan_fixture.claim();
}

#[test]
fn a_worker_of_a_namespace_that_came_back_with_an_old_version_is_not_used() {
    let mut plan_fixture = PlanFixture::met(setup());
    let claim = plan_fixture.claim();
    // The store was wiped, the namespace created anew, and its version is the one that was read.
    let other = Tenure { incarnation: Nonce::from_bits(2), ..tenure(&claim, 7, claim.ask) };
    let answer = Ok(Acquired::Held(other.clone()));
    assert_eq!(
        plan_fixture.answer(&claim, answer),
        Effect::None,
        "its quarantine was not looked at"
    );
    assert!(matches!(plan_fixture.next(), Next::Release(back, _) if back == other));
    plan_fixture.plan.released(plan_fixture.now, &Ok(Released::Done));
    plan_fixture.wait();
    assert!(matches!(plan_fixture.next(), Next::ReadMeta));
}

#[test]
fn a_quarantine_is_raised_at_once_however_long_its_own_end_is_waited_for() {
    let slow =
        Timing { ttl: seconds(120), heartbeat: seconds(40), outage_budget: millis(BUDGET_MS) };
    let mut plan_fixture = PlanFixture::met(Setup { timing: slow, ..setup() });
    let horizon = plan_fixture.take(7).horizon;
    plan_fixture.pass(seconds(10));
    plan_fixture.plan.meta_read(plan_fixture.now, Ok(Look::default()), false);
    plan_fixture.draft();
    plan_fixture.plan.meta_written(plan_fixture.now, Ok(Put::Done(Version(1))));
    assert!(!plan_fixture.pause().is_zero(), "the quarantine holds");
    // The store is wiped again, and others create the namespace.
    plan_fixture.pass(seconds(10));
    for (bits, answer) in [
        (2, Err(error(ErrorKind::Unavailable))),
        (3, Ok(Put::Conflict)),
        (4, Ok(Put::Done(Version(2)))),
    ] {
        plan_fixture.read(Ok(Some((1, Meta { incarnation: Nonce::from_bits(bits), ..meta() }))));
        assert_eq!(plan_fixture.draft().1.quarantine, horizon);
        plan_fixture.plan.meta_written(plan_fixture.now, answer);
        plan_fixture.pass(seconds(1));
    }
    assert!(plan_fixture.pause() > seconds(1), "it is written");
}

#[test]
fn meta_is_read_again_so_long_after_it_was_asked_for_not_answered() {
    let mut plan_fixture = PlanFixture::met(setup());
    let claim = plan_fixture.claim();
    plan_fixture.pass(seconds(4));
    plan_fixture.answer(&claim, Ok(Acquired::Held(tenure(&claim, 7, claim.ask))));
    plan_fixture.pass(seconds(6));
    assert!(matches!(plan_fixture.plan.next(plan_fixture.now), Next::ReadMeta));
}

#[test]
fn a_lane_closes_where_others_may_have_come_before_the_quarantine_was_raised() {
    let created = Meta { incarnation: Nonce::from_bits(2), ..meta() };
    for (stopped, is_open) in [(4, true), (6, false)] {
        let mut plan_fixture = PlanFixture::holding();
        plan_fixture.pass(seconds(10));
        plan_fixture.extension();
        // The process is stopped, and the namespace created anew.
        plan_fixture.pass(seconds(stopped));
        plan_fixture.extended(Ok(Extended::Lost(Loss::Vanished)));
        assert_eq!(plan_fixture.plan.heard(), plan_fixture.now.boot - seconds(10 + stopped));
        plan_fixture.read(Ok(Some((1, created.clone()))));
        plan_fixture.draft();
        plan_fixture.plan.meta_written(plan_fixture.now, Ok(Put::Done(Version(2))));
        assert_eq!(plan_fixture.plan.status().grant.is_some(), is_open, "after {stopped} s");
    }
}
