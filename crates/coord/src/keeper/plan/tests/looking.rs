//! The look at the whole pool: other clocks, and how full it is.

use super::{PlanFixture, START, meta, millis, seconds, setup, tenure};
use crate::error::ErrorKind;
use crate::keeper::plan::{Effect, Next, Setup};
use crate::keeper::status::{ClockSkew, Judge, LeaseState, Waiting};
use crate::lease::{Acquired, Extended, Tenure};
use crate::nonce::Nonce;
use crate::record::{Meta, Record, Token, UnixMs, Version};
use crate::slot::Slot;
use crate::store::{Entry, Found, Presence};

const HOUR_MS: u64 = 3_600_000;

fn peer(number: u32, renewed: UnixMs) -> Entry {
    let record = Record {
        token: Token(1),
        nonce: Some(Nonce::from_bits(u128::from(number) + 1)),
        holder: format!("peer {number}"),
        floor: 0,
        horizon: START,
        renewed,
        expires: None,
        released: false,
        info: std::collections::BTreeMap::new(),
    };
    let presence = Presence::Held { expires_in: None };
    Entry { slot: Slot::worker(number), version: Version(1), found: Found::Known(record), presence }
}

impl PlanFixture {
    /// Goes on for a while with others whose last renewals are given by our clock; the effects of
    /// our extensions.
    fn live(&mut self, time: u64, renewals: impl Fn(UnixMs) -> Vec<Entry>) -> Vec<Effect> {
        let mut effects = Vec::new();
        for _ in 0..time {
            self.pass(seconds(1));
            self.pool = renewals(self.now.unix);
            if let Next::Extend(tenure, ask) = self.next() {
                let store_now = tenure.store_now.map(|_| self.now.unix);
                let horizon = tenure.horizon.max(ask.horizon);
                let tenure = Tenure { horizon, usable: horizon, store_now, ..tenure };
                effects.push(self.extended(Ok(Extended::Held(tenure))));
            }
        }
        effects
    }

    fn skew(&self) -> Option<ClockSkew> {
        match self.plan.status().state {
            LeaseState::Distrusted(skew) => Some(skew),
            _ => None,
        }
    }
}

/// Three who renew every heartbeat by clocks that are this far from ours.
fn three(skews_ms: [i64; 3]) -> impl Fn(UnixMs) -> Vec<Entry> {
    move |now| {
        let renewed = now / 10_000 * 10_000;
        let of =
            |(number, skew): (u32, i64)| peer(number, renewed.checked_add_signed(skew).unwrap());
        (20..).zip(skews_ms).map(of).collect()
    }
}

#[test]
fn a_clock_that_differs_from_most_others_raises_no_horizon() {
    let off = HOUR_MS.cast_signed();
    for theirs in [off, -off, 60_000, -60_000] {
        let mut plan_fixture = PlanFixture::holding();
        // One of them is right by us, and that is not most.
        let others = three([theirs, 0, theirs]);
        plan_fixture.live(45, &others);
        let skew =
            plan_fixture.skew().unwrap_or_else(|| panic!("trusted, and yet {theirs} ms off"));
        assert_eq!(skew.judge, Judge::Peers);
        assert!(skew.ahead_ms.abs_diff(-theirs) <= 20_000, "{skew:?} for {theirs}");
        let granted = plan_fixture.plan.status().grant;
        let effects = plan_fixture.live(600, &others);
        assert!(effects.len() > 40, "presence is renewed all the same");
        assert!(effects.iter().all(|effect| *effect == Effect::None), "{effects:?}");
        assert_eq!(plan_fixture.plan.status().grant, granted);
        // Once our clock is set right the horizon is raised again.
        plan_fixture.now.unix = plan_fixture.now.unix.checked_add_signed(theirs).unwrap();
        let effects = plan_fixture.live(30, three([0, 0, 0]));
        assert!(matches!(effects.last(), Some(Effect::Raise(_))), "{effects:?}");
        assert_eq!(plan_fixture.plan.status().state, LeaseState::Held);
    }
}

#[test]
fn clocks_within_the_bound_are_trusted() {
    for theirs in [0, 9_000, -9_000] {
        let mut plan_fixture = PlanFixture::holding();
        let effects = plan_fixture.live(1000, three([theirs; 3]));
        assert_eq!(plan_fixture.skew(), None, "{theirs}");
        assert!(effects.iter().all(|effect| matches!(effect, Effect::Raise(_))));
    }
}

#[test]
fn others_who_renew_rarely_or_are_stopped_say_nothing_about_clocks() {
    let slow = |now: UnixMs| [20, 21, 22].map(|n| peer(n, now / 300_000 * 300_000)).to_vec();
    let stopped = |_: UnixMs| [20, 21, 22].map(|n| peer(n, START - 300_000)).to_vec();
    let stopped_since = |now: UnixMs| {
        let until = now.min(START + 100_000);
        [20, 21, 22].map(|n| peer(n, until)).to_vec()
    };
    let others: [&dyn Fn(UnixMs) -> Vec<Entry>; 3] = [&slow, &stopped, &stopped_since];
    for (case, others) in others.into_iter().enumerate() {
        // They are there from the first look on.
        let mut plan_fixture = PlanFixture::met(setup());
        plan_fixture.pool = others(plan_fixture.now.unix);
        plan_fixture.take(7);
        for _ in 0..30 {
            plan_fixture.live(60, others);
            assert_eq!(plan_fixture.skew(), None, "case {case}");
        }
    }
}

#[test]
fn few_others_do_not_decide() {
    let off = |now: UnixMs| now - HOUR_MS;
    let two = |now: UnixMs| vec![peer(20, off(now)), peer(21, off(now))];
    let ourselves = |now: UnixMs| {
        let mut entries = two(now);
        let mut own = peer(22, off(now));
        if let Found::Known(record) = &mut own.found {
            record.holder = setup().holder;
        }
        // Gone, and another lane of ours.
        entries.push(Entry { presence: Presence::Free, ..peer(23, off(now)) });
        entries.push(own);
        entries
    };
    let others: [&dyn Fn(UnixMs) -> Vec<Entry>; 2] = [&two, &ourselves];
    for others in others {
        let mut plan_fixture = PlanFixture::holding();
        plan_fixture.live(300, others);
        assert_eq!(plan_fixture.skew(), None);
    }
}

#[test]
fn a_stores_own_clock_decides_where_it_has_one() {
    let mut plan_fixture = PlanFixture::met(setup());
    let claim = plan_fixture.claim();
    let held = Tenure { store_now: Some(START), ..tenure(&claim, 7, claim.ask) };
    plan_fixture.answer(&claim, Ok(Acquired::Held(held)));
    plan_fixture.live(300, three([HOUR_MS.cast_signed(); 3]));
    assert_eq!(plan_fixture.skew(), None);
    assert!(plan_fixture.plan.status().pool.is_some(), "it is looked at all the same");
}

#[test]
fn nothing_new_is_taken_with_a_clock_that_differs_from_most_others() {
    let mut plan_fixture = PlanFixture::holding();
    let others = three([HOUR_MS.cast_signed(); 3]);
    plan_fixture.live(45, &others);
    assert!(plan_fixture.skew().is_some());
    plan_fixture.now.boot += seconds(10);
    plan_fixture.now.unix += 10_000;
    plan_fixture.extension();
    plan_fixture.extended(Ok(Extended::Lost(super::holding::superseded())));
    for _ in 0..100 {
        plan_fixture.pool = others(plan_fixture.now.unix);
        match plan_fixture.next() {
            Next::Wait(until) => plan_fixture.pass(until - plan_fixture.now.boot),
            // What was granted before may still be used.
            Next::ReadMeta => plan_fixture.read(Ok(Some((3, super::meta())))),
            other => panic!("a worker is claimed: {other:?}"),
        }
        let waiting = &plan_fixture.plan.status().state;
        assert!(matches!(waiting, LeaseState::Replacing(_, Waiting::Clock(_))), "{waiting:?}");
    }
    assert!(matches!(plan_fixture.next(), Next::Wait(_)), "nothing is left to read");
    plan_fixture.now.unix += HOUR_MS;
    plan_fixture.take(8);
}

#[test]
fn looks_are_rare_and_the_more_so_the_larger_the_pool_is() {
    for (slots, most) in [(0, 60), (1000, 8)] {
        let mut plan_fixture = PlanFixture::holding();
        let entries: Vec<Entry> = (20..20 + slots).map(|n| peer(n, START)).collect();
        let mut looks = 0;
        for _ in 0..3600 {
            plan_fixture.pass(seconds(1));
            match plan_fixture.plan.next(plan_fixture.now) {
                Next::Look => {
                    looks += 1;
                    plan_fixture.plan.looked(plan_fixture.now, Ok(entries.clone()));
                }
                Next::Extend(tenure, _) => {
                    plan_fixture.extended(Ok(Extended::Held(tenure)));
                }
                _ => {}
            }
        }
        assert!((2..=most).contains(&looks), "{looks} in an hour among {slots}");
    }
}

#[test]
fn a_crowd_that_starts_together_looks_when_all_have_a_worker_and_not_all_at_once() {
    let first_look = |chance: u128| {
        let mut plan_fixture = PlanFixture::met(setup());
        plan_fixture.now.nonce = Nonce::from_bits(chance);
        plan_fixture.take(7);
        let begin = plan_fixture.now.boot;
        loop {
            plan_fixture.pass(millis(100));
            match plan_fixture.plan.next(plan_fixture.now) {
                Next::Look => return plan_fixture.now.boot - begin,
                Next::Extend(tenure, _) => {
                    plan_fixture.extended(Ok(Extended::Held(tenure)));
                }
                _ => {}
            }
        }
    };
    let (soonest, latest) = (first_look(255), first_look(256));
    assert!(soonest > seconds(10), "{soonest:?}: others still seek within a heartbeat");
    assert!(latest <= seconds(21) && latest > soonest + seconds(9), "{soonest:?} {latest:?}");
}

#[test]
fn a_look_that_fails_is_no_trouble_and_is_repeated() {
    let mut plan_fixture = PlanFixture::holding();
    let mut failed = 0;
    while failed < 3 {
        plan_fixture.pass(millis(500));
        match plan_fixture.plan.next(plan_fixture.now) {
            Next::Look => {
                failed += 1;
                plan_fixture
                    .plan
                    .looked(plan_fixture.now, Err(super::error(ErrorKind::Unavailable)));
            }
            Next::Extend(tenure, _) => {
                plan_fixture.extended(Ok(Extended::Held(tenure)));
            }
            _ => {}
        }
    }
    let status = plan_fixture.plan.status();
    assert_eq!((&status.state, &status.trouble), (&LeaseState::Held, &None));
}

#[test]
fn a_pool_of_which_more_than_half_is_in_use_is_crowded() {
    // Of ten workers: how many are held, and how many were left with times that are not over.
    for (held, blocked, crowded) in [(5, 0, false), (3, 2, false), (6, 0, true), (3, 3, true)] {
        let mut plan_fixture = PlanFixture::new(Setup { workers: Some((0, 9)), ..setup() });
        plan_fixture.read(Ok(Some((3, Meta { last_worker: 9, ..meta() }))));
        plan_fixture.take(0);
        let left = |n| {
            let mut entry = Entry { presence: Presence::Free, ..peer(n, START) };
            if let Found::Known(record) = &mut entry.found {
                record.horizon = START + 300_000;
            }
            entry
        };
        let entries: Vec<Entry> =
            (0..held).map(|n| peer(n, START)).chain((held..held + blocked).map(left)).collect();
        plan_fixture.live(30, |_| entries.clone());
        let pool = plan_fixture.plan.status().pool.expect("it was looked at");
        assert_eq!((pool.size, pool.census.held, pool.census.blocked), (10, held, blocked));
        assert_eq!(pool.is_crowded(), crowded, "{pool}");
    }
}

#[test]
fn a_fixed_worker_is_no_crowd() {
    let mut plan_fixture = PlanFixture::new(Setup { workers: Some((4, 4)), ..setup() });
    let only = Meta { first_worker: 4, last_worker: 4, ..meta() };
    plan_fixture.read(Ok(Some((3, only))));
    plan_fixture.take(4);
    plan_fixture.live(30, |now| vec![peer(4, now)]);
    let pool = plan_fixture.plan.status().pool.expect("it was looked at");
    assert_eq!((pool.size, pool.census.held), (1, 1));
    assert!(!pool.is_crowded());
}
