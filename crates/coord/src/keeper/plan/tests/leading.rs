//! A leader: one slot by its name, for as long as its time lasts.

use std::time::Duration;

use super::{EVEN, START, error, meta, millis, seconds, tenure};
use crate::error::ErrorKind;
use crate::keeper::plan::{Effect, Next, Now, Plan};
use crate::keeper::status::{LeaseState, Refusal};
use crate::keeper::{Candidacy, FirstUse};
use crate::lease::{Acquired, Census, Choice, Claim, Extended, Loss, Released, Tenure};
use crate::nonce::Nonce;
use crate::record::{Meta, Record, Token, Version, Versioned};
use crate::repair;
use crate::rules::{RUN_AHEAD_MS, SILENCE_MS};
use crate::slot::{Group, Slot};
use crate::store::{Entry, Found, Look, Presence, Put};

const TTL: Duration = seconds(10);
const TRUST: Duration = seconds(9);
const HEARTBEAT: Duration = seconds(3);
const RETRY: Duration = seconds(2);
const LOCK_DELAY: Duration = seconds(4);
const WINDOW: Duration = seconds(3);

fn slot() -> Slot {
    Slot::named(Group::Elections, "job").unwrap()
}

fn candidacy(window: Option<Duration>) -> Candidacy {
    Candidacy {
        slot: slot(),
        holder: "me".into(),
        ttl: TTL,
        heartbeat: HEARTBEAT,
        retry: RETRY,
        lock_delay: LOCK_DELAY,
        trust: Some(TRUST),
        window,
        first_use: FirstUse::AfterSilence,
    }
}

/// A plan to lead, and the clocks that it is told.
struct Campaign {
    plan: Plan,
    now: Now,
}

impl Campaign {
    /// Somebody who knows the namespace, and sees that nobody ever led.
    fn new(candidacy: Candidacy) -> Self {
        let now = Now { boot: seconds(1000), unix: START, last: 0, nonce: Nonce::from_bits(EVEN) };
        let known = Versioned { version: Version(3), value: meta() };
        let mut campaign = Self { plan: Plan::for_leader(candidacy, Some(known), now), now };
        campaign.sees(None);
        campaign
    }

    /// Somebody who leads.
    fn leading(window: Option<Duration>) -> Self {
        let mut campaign = Self::new(candidacy(window));
        assert_eq!(campaign.elect(), Effect::Lead);
        campaign
    }

    fn sees(&mut self, entry: Option<&Entry>) {
        self.plan.saw(entry, (self.now.boot, self.now.boot), Some(Duration::ZERO));
    }

    fn pass(&mut self, time: Duration) {
        self.now.boot += time;
        self.now.unix += u64::try_from(time.as_millis()).unwrap();
    }

    fn next(&mut self) -> Next {
        self.now.nonce = Nonce::from_bits(self.now.nonce.bits() + 512);
        self.plan.next(self.now)
    }

    fn claim(&mut self) -> Claim {
        match self.next() {
            Next::Acquire(claim) => claim,
            other => panic!("wanted a claim, got {other:?}"),
        }
    }

    /// The tenure that a claim gets.
    fn tenure_for(claim: &Claim) -> Tenure {
        Tenure { slot: slot(), ..tenure(claim, 0, claim.ask) }
    }

    fn elect(&mut self) -> Effect {
        let claim = self.claim();
        let held = Self::tenure_for(&claim);
        self.plan.acquired(self.now, &claim, Ok(Acquired::Held(held)))
    }

    fn renew(&mut self) -> Effect {
        match self.next() {
            Next::Extend(tenure, ask) => {
                let held = Tenure { horizon: ask.horizon, usable: ask.horizon, ..tenure };
                self.plan.extended(self.now, Ok(Extended::Held(held)))
            }
            other => panic!("wanted an extension, got {other:?}"),
        }
    }

    fn wait(&mut self) -> Duration {
        match self.next() {
            Next::Wait(until) => until - self.now.boot,
            other => panic!("wanted to wait, got {other:?}"),
        }
    }

    fn release(&mut self) -> (Tenure, u64) {
        match self.next() {
            Next::Release(tenure, last) => (tenure, last),
            other => panic!("wanted to release, got {other:?}"),
        }
    }
}

#[test]
fn a_leader_claims_the_slot_that_it_saw_and_uses_no_times() {
    let mut campaign = Campaign::new(candidacy(None));
    let claim = campaign.claim();
    assert_eq!(claim.choice, Choice::This(slot(), Version(0)));
    assert_eq!((claim.ask, claim.window_ms, claim.quarantine), (0, 0, 0));
    assert_eq!((claim.holder.as_str(), claim.ttl, claim.meta), ("me", TTL, Version(3)));
    assert_eq!(campaign.elect(), Effect::Lead);
    assert_eq!(campaign.wait(), HEARTBEAT);
}

#[test]
fn the_leader_of_a_scope_uses_times_up_to_its_window() {
    let mut campaign = Campaign::leading(Some(WINDOW));
    assert_eq!(campaign.plan.tenure().unwrap().horizon, START + 3000);
    campaign.pass(HEARTBEAT);
    assert_eq!(campaign.renew(), Effect::Raise(START + 6000));
}

#[test]
fn a_scope_waits_for_the_quarantine_and_a_leader_does_not() {
    let quarantined = Meta { quarantine: START + 60_000, ..meta() };
    for (window, waits) in [(Some(WINDOW), true), (None, false)] {
        let mut campaign = Campaign::new(candidacy(window));
        let known = Versioned { version: Version(3), value: quarantined.clone() };
        campaign.plan = Plan::for_leader(candidacy(window), Some(known), campaign.now);
        campaign.sees(None);
        assert_eq!(matches!(campaign.next(), Next::Wait(_)), waits, "{window:?}");
    }
}

#[test]
fn leading_lasts_from_when_it_was_asked_for() {
    let mut campaign = Campaign::new(candidacy(None));
    let claim = campaign.claim();
    campaign.pass(seconds(5));
    let held = Campaign::tenure_for(&claim);
    let effect = campaign.plan.acquired(campaign.now, &claim, Ok(Acquired::Held(held)));
    assert_eq!((effect, campaign.plan.sent()), (Effect::Lead, seconds(1000)));
    campaign.pass(TRUST - seconds(5));
    assert!(matches!(campaign.next(), Next::Lapse(_)));
}

#[test]
fn an_answer_that_took_all_the_time_makes_nobody_leader() {
    let mut campaign = Campaign::new(candidacy(None));
    let claim = campaign.claim();
    // The first sending may have been carried out: its time counts.
    campaign.plan.acquired(campaign.now, &claim, Err(error(ErrorKind::Unknown)));
    campaign.pass(TRUST);
    let again = campaign.claim();
    assert_eq!((&again.nonce, &again.choice), (&claim.nonce, &claim.choice));
    let held = Campaign::tenure_for(&again);
    let effect = campaign.plan.acquired(campaign.now, &again, Ok(Acquired::Held(held.clone())));
    assert_eq!(effect, Effect::None);
    assert_eq!(campaign.release(), (held.clone(), held.floor));
    campaign.plan.released(campaign.now, &Ok(Released::Done));
    // And then it campaigns on, by what it sees from now on.
    assert_eq!(campaign.wait(), RETRY);
    campaign.pass(RETRY);
    assert!(matches!(campaign.next(), Next::Watch(_)));
    campaign.sees(None);
    assert_eq!(campaign.elect(), Effect::Lead);
}

#[test]
fn whoever_withdraws_gives_back_what_a_claim_may_have_taken() {
    let mut campaign = Campaign::new(candidacy(None));
    let claim = campaign.claim();
    campaign.plan.acquired(campaign.now, &claim, Err(error(ErrorKind::Unknown)));
    campaign.plan.end(campaign.now, None);
    campaign.pass(RETRY);
    let again = campaign.claim();
    assert_eq!(again.nonce, claim.nonce);
    let held = Campaign::tenure_for(&again);
    campaign.plan.acquired(campaign.now, &again, Ok(Acquired::Held(held.clone())));
    assert_eq!(campaign.release(), (held.clone(), held.floor));
    // Nobody else could lead otherwise.
    campaign.plan.released(campaign.now, &Err(error(ErrorKind::Denied)));
    campaign.pass(RETRY);
    campaign.release();
    campaign.plan.released(campaign.now, &Ok(Released::Done));
    assert!(matches!(campaign.next(), Next::Stop));
}

#[test]
fn whoever_withdraws_while_a_claim_is_under_way_gives_back_what_it_took() {
    let mut campaign = Campaign::new(candidacy(None));
    let claim = campaign.claim();
    campaign.plan.end(campaign.now, None);
    let held = Campaign::tenure_for(&claim);
    let effect = campaign.plan.acquired(campaign.now, &claim, Ok(Acquired::Held(held)));
    assert_eq!(effect, Effect::None);
    campaign.release();
    let mut loser = Campaign::new(candidacy(None));
    let claim = loser.claim();
    loser.plan.end(loser.now, None);
    loser.plan.acquired(loser.now, &claim, Ok(Acquired::Taken));
    assert!(matches!(loser.next(), Next::Stop));
}

#[test]
fn a_claim_in_vain_is_followed_by_a_look() {
    let full = |next_floor| Acquired::Full(Census { next_floor, ..Census::default() });
    let soon = full(Some(START + RUN_AHEAD_MS + 1000));
    for (answer, pause) in [(Acquired::Taken, 0), (soon, 1000), (full(None), 2000)] {
        let mut campaign = Campaign::new(candidacy(Some(WINDOW)));
        let claim = campaign.claim();
        campaign.plan.acquired(campaign.now, &claim, Ok(answer));
        campaign.pass(millis(pause));
        assert!(matches!(campaign.next(), Next::Watch(_)));
        campaign.pass(millis(1));
        campaign.sees(None);
        campaign.claim();
    }
}

#[test]
fn time_that_runs_out_ends_it_and_others_wait_for_the_lock_delay() {
    let mut campaign = Campaign::leading(None);
    campaign.pass(HEARTBEAT);
    let Next::Extend(..) = campaign.next() else { panic!("it is time") };
    campaign.plan.extended(campaign.now, Err(error(ErrorKind::Unavailable)));
    assert_eq!(campaign.plan.status().state, LeaseState::Unrenewed);
    campaign.pass(TRUST - HEARTBEAT);
    let held = campaign.plan.tenure().cloned().unwrap();
    // An answer that comes now comes too late.
    let late = Ok(Extended::Held(held.clone()));
    assert_eq!(campaign.plan.extended(campaign.now, late), Effect::None);
    assert!(matches!(campaign.next(), Next::Lapse(lapsed) if lapsed == held));
    // Presence ends a TTL after the last answer, and then the work may go on for the lock delay.
    assert_eq!(campaign.wait(), TTL - TRUST + LOCK_DELAY);
    campaign.pass(TTL - TRUST + LOCK_DELAY);
    assert_eq!(campaign.release(), (held, 0));
}

#[test]
fn a_resignation_after_the_end_does_not_shorten_the_lock_delay() {
    let mut campaign = Campaign::leading(None);
    campaign.pass(TRUST);
    campaign.plan.end(campaign.now, None);
    assert_eq!(campaign.wait(), TTL - TRUST + LOCK_DELAY);
    let mut fenced = Campaign::new(Candidacy { lock_delay: Duration::ZERO, ..candidacy(None) });
    fenced.elect();
    fenced.pass(TRUST);
    fenced.plan.end(fenced.now, None);
    fenced.release();
}

#[test]
fn whoever_resigns_says_which_times_were_used() {
    for (window, last, written) in [
        (None, None, 0),
        (Some(WINDOW), Some(START + 5), START + 5),
        // Nobody said which.
        (Some(WINDOW), None, START + 3000),
    ] {
        let mut campaign = Campaign::leading(window);
        campaign.plan.end(campaign.now, last);
        assert_eq!(campaign.release().1, written);
    }
}

#[test]
fn a_scope_that_the_store_forgot_keeps_others_off_its_times() {
    let forget = |window| {
        let mut campaign = Campaign::leading(window);
        campaign.pass(HEARTBEAT);
        campaign.next();
        let lost = Ok(Extended::Lost(Loss::Vanished));
        assert_eq!(campaign.plan.extended(campaign.now, lost), Effect::Close);
        campaign
    };
    let mut campaign = forget(Some(WINDOW));
    assert!(matches!(campaign.next(), Next::ReadMeta));
    let other = Meta { incarnation: Nonce::from_bits(9), ..meta() };
    let found = Versioned { version: Version(7), value: other };
    let look = Look { meta: Some(found), ..Look::default() };
    campaign.plan.meta_read(campaign.now, Ok(look), false);
    match campaign.next() {
        Next::WriteMeta(Some(Version(7)), raised) => {
            assert_eq!((raised.quarantine, raised.token_floor), (START + 3000, Token(START)));
        }
        other => panic!("wanted to raise the quarantine, got {other:?}"),
    }
    campaign.plan.meta_written(campaign.now, Ok(Put::Done(Version(8))));
    assert!(matches!(campaign.next(), Next::Stop));
    // Whoever is new in the namespace waits for this no longer than that.
    let mut late = forget(Some(WINDOW));
    late.pass(millis(SILENCE_MS));
    assert!(matches!(late.next(), Next::Stop));
}

#[test]
fn a_namespace_that_is_not_there_is_created_without_a_layout() {
    let mut campaign = Campaign::new(candidacy(None));
    campaign.plan = Plan::for_leader(candidacy(None), None, campaign.now);
    campaign.sees(None);
    assert!(matches!(campaign.next(), Next::ReadMeta));
    // A clock that no times come from is judged by nobody: the store's counts.
    let look = Look { clock: Some(START - 3_600_000), ..Look::default() };
    campaign.plan.meta_read(campaign.now, Ok(look), false);
    let Next::WriteMeta(None, born) = campaign.next() else { panic!("it is to be created") };
    assert!(born.is_blank());
    assert_eq!(born.quarantine, START - 3_600_000 + SILENCE_MS);
}

#[test]
fn a_claim_that_named_another_namespace_is_given_back() {
    let mut campaign = Campaign::new(candidacy(Some(WINDOW)));
    let claim = campaign.claim();
    let incarnation = Nonce::from_bits(9);
    let held = Tenure { incarnation, ..Campaign::tenure_for(&claim) };
    let effect = campaign.plan.acquired(campaign.now, &claim, Ok(Acquired::Held(held)));
    assert_eq!(effect, Effect::None);
    campaign.release();
    campaign.plan.released(campaign.now, &Ok(Released::Done));
    campaign.pass(RETRY);
    assert!(matches!(campaign.next(), Next::ReadMeta));
}

#[test]
fn what_waiting_cannot_mend_is_told_to_a_candidate() {
    let mut campaign = Campaign::new(candidacy(None));
    let claim = campaign.claim();
    campaign.plan.acquired(campaign.now, &claim, Err(error(ErrorKind::Denied)));
    let refusal = Refusal::Store(error(ErrorKind::Denied));
    assert_eq!(campaign.plan.status().state, LeaseState::Refused(refusal));
    assert!(matches!(campaign.next(), Next::Stop));
}

#[test]
fn tokens_rise_in_a_namespace_that_was_created_anew_whatever_clocks_show() {
    let other = Meta { incarnation: Nonce::from_bits(9), ..meta() };
    let found = Versioned { version: Version(7), value: other.clone() };
    // A leader whose clock is an hour ahead, as others saw it.
    let ahead = Token(START + 3_600_000);
    let record = Record { token: ahead, nonce: None, ..repair::replacement(&claim_to_judge()) };
    let seen = Entry {
        slot: slot(),
        version: Version(5),
        found: Found::Known(record),
        presence: Presence::Held { expires_in: None },
    };
    let mut campaign = Campaign::new(candidacy(None));
    campaign.sees(Some(&seen));
    campaign.pass(seconds(60));
    campaign.sees(None);
    campaign.pass(TTL + LOCK_DELAY);
    let claim = campaign.claim();
    campaign.plan.acquired(campaign.now, &claim, Ok(Acquired::MetaMoved));
    assert!(matches!(campaign.next(), Next::ReadMeta));
    let look = Look { meta: Some(found), ..Look::default() };
    campaign.plan.meta_read(campaign.now, Ok(look), false);
    match campaign.next() {
        Next::WriteMeta(Some(Version(7)), raised) => {
            assert_eq!(raised, Meta { token_floor: ahead, ..other });
        }
        other => panic!("wanted to raise the floor of tokens, got {other:?}"),
    }
}

/// A claim that is not made.
fn claim_to_judge() -> Claim {
    Claim::to_judge(&Versioned { version: Version(3), value: meta() }, START)
}

#[test]
fn whoever_retries_often_can_wait_for_a_floor_too() {
    let mut campaign = Campaign::new(Candidacy { retry: millis(10), ..candidacy(Some(WINDOW)) });
    let claim = campaign.claim();
    let full = Acquired::Full(Census { next_floor: Some(START + 60_000), ..Census::default() });
    campaign.plan.acquired(campaign.now, &claim, Ok(full));
    assert_eq!(campaign.wait(), millis(10));
}

#[test]
fn a_leader_whose_clock_the_store_contradicts_is_not_renewed_and_blocks_nobody() {
    let mut campaign = Campaign::leading(Some(WINDOW));
    campaign.pass(HEARTBEAT);
    // The store has a clock, and ours is a minute ahead of it now.
    campaign.now.unix += 60_000;
    let Next::Extend(tenure, ask) = campaign.next() else { panic!("it is time") };
    let store_now = Some(campaign.now.unix - 60_000);
    let held = Tenure { horizon: ask.horizon, usable: ask.horizon, store_now, ..tenure };
    assert_eq!(campaign.plan.extended(campaign.now, Ok(Extended::Held(held))), Effect::None);
    assert!(matches!(campaign.plan.status().state, LeaseState::Distrusted(_)));
    campaign.pass(HEARTBEAT);
    let Next::Extend(_, ask) = campaign.next() else { panic!("it is time again") };
    assert!(ask.horizon < START + 20_000, "what it asks for now is not counted from its clock");
    campaign.pass(TRUST - HEARTBEAT * 2);
    assert!(
        matches!(campaign.next(), Next::Lapse(_)),
        "it leads no longer than it was renewed for"
    );
    campaign.pass(TTL + LOCK_DELAY);
    assert_eq!(campaign.release().1, START + 3000, "as far as times were ever allowed");
}

#[test]
fn a_long_delay_is_not_waited_for_by_an_old_look() {
    let delay = Duration::from_secs(600);
    let mut campaign = Campaign::new(Candidacy { lock_delay: delay, ..candidacy(None) });
    let record =
        Record { nonce: Some(Nonce::from_bits(1)), ..repair::replacement(&claim_to_judge()) };
    let left = Entry {
        slot: slot(),
        version: Version(5),
        found: Found::Known(record),
        presence: Presence::Free,
    };
    campaign.sees(Some(&left));
    campaign.wait();
    campaign.pass(RETRY);
    assert!(matches!(campaign.next(), Next::Watch(_)));
}
