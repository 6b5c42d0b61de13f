//! The transitions of a record: every rule that uniqueness rests on, without any input or output.
//!
//! | rule | what breaks without it |
//! |---|---|
//! | a new tenure starts above the horizon of all before it | two holders use one time |
//! | the horizon of a record never falls, except by its holder's release | a successor starts too low |
//! | a holder is known by token and nonce, never by name | a restarted namesake inherits what it does not know |
//! | an acquisition names the version that was read | a late repetition hands the slot back with an old floor |
//! | no horizon is further from now than the window | a clock that jumped ahead blocks the slot for ever |
//! | tokens follow real time | tokens repeat after the store was wiped |
//! | a slot without a record gets a token above those of all that were forgotten | tokens repeat, or fall, after a slot was forgotten |
//!
//! A store that may lose the end of what it acknowledged has a [`History`], and these hold beside:
//!
//! | rule | what breaks without it |
//! |---|---|
//! | a slot that its holder did not release is used once the takeover has settled | the holder comes back in a history that lacks the takeover, and both go on |
//! | a slot that its holder released may be used for [`UNSETTLED_MS`] before that | the acquisition is lost, and the next holder starts too low |
//! | an extension is used up to [`UNSETTLED_MORE_MS`] beyond what has settled | the same |
//! | no horizon is used that is further from the store's clock than the window | the same, after a clock jumped ahead |
//! | in a new history a tenure starts above all that may have been used of what was lost | the same |
//! | a holder goes on in a history that may lack takeovers only if its presence outlasted the one before | a successor whose takeover was lost uses the same times |
//!
//! So the times of different tenures are disjoint, with no assumption about clocks, delays or
//! pauses. The model in `crates/frazil/tests` searches all of this exhaustively in the small.

use std::time::Duration;

use crate::lease::{Ask, Census, Claim, Loss, Settling, Tenure};
use crate::nonce::Nonce;
use crate::record::{Meta, Record, Token, UnixMs, Version};
use crate::slot::{Group, Slot};
use crate::store::{Found, History};
use crate::time::millis;

/// How far ahead of now a floor may be for a slot to be taken: the holder's times then run ahead
/// by as much. More would be a lie about the time.
pub const RUN_AHEAD_MS: u64 = 2000;
/// No window is longer than this, whatever meta says: meta may be gone or wrong.
pub const WINDOW_MAX_MS: u64 = 3_600_000;

/// How far a clock may differ from the store's, or from those of most others: more makes IDs that
/// lie about their time.
pub const CLOCK_BOUND_MS: u64 = 10_000;
/// For how long a slot that was acquired is used before the acquisition has settled.
pub const UNSETTLED_MS: u64 = 10_000;
/// How far beyond the last horizon that has settled a holder goes.
pub const UNSETTLED_MORE_MS: u64 = 30_000;
/// How far the clock of a store may go back when it restarts, or differ from that of its successor.
pub const STORE_CLOCK_BACK_MS: u64 = 2000;

/// A holder that may still use times reads meta at least this often, however it is doing.
pub const META_EVERY: Duration = Duration::from_secs(10);
/// No request to a store lasts longer than this where somebody counts on its end.
pub const REQUEST_MAX: Duration = Duration::from_secs(5);
/// For how long a lane goes on after the last request was made that ended without showing a namespace
/// other than its own: newcomers of a namespace that seems new wait for longer.
pub const HEARD_FOR: Duration = META_EVERY.saturating_add(REQUEST_MAX);
/// How far a lane goes without its keeper, where the store is on another machine or may be.
pub const REMOTE_WATCHDOG: Duration = META_EVERY;
/// How far a lane goes without its keeper, where the store is a directory of this machine: less than
/// what a new directory starts ahead.
pub const LOCAL_WATCHDOG: Duration = Duration::from_millis(1500);

const _: () = assert!(LOCAL_WATCHDOG.as_millis() < RUN_AHEAD_MS as u128);

/// For how long nobody uses a namespace that seems new, in milliseconds: its holders, if it has any,
/// read meta within this time and raise the quarantine. A quarantine is left a little early.
pub const SILENCE_MS: u64 = HEARD_FOR.as_secs() * 1000 + STORE_CLOCK_BACK_MS + RUN_AHEAD_MS;

/// What a slot nobody is present in is good for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotAvailability {
    /// It can be taken; its floor has passed.
    Passed,
    /// It can be taken, and its times will run ahead of now for a while.
    Ahead,
    /// Its floor is too far ahead.
    Blocked {
        /// The floor.
        floor: UnixMs,
    },
    /// Its floor is further ahead than any window allows: a clock was wrong, or the record is.
    Poisoned {
        /// The floor.
        floor: UnixMs,
    },
}

/// The floor of whoever acquires the slot next, in a store with this history.
#[must_use]
pub fn floor_of(found: &Found, claim: &Claim, history: &History) -> UnixMs {
    let recorded = match found {
        Found::New => 0,
        // What was promised to its last holder is unknown, but no more than a window from now.
        Found::Lost => claim.now.saturating_add(window(claim.window_ms)),
        Found::Known(record) => record.horizon.saturating_add(lost_slack(record, claim, history)),
    };
    recorded.max(claim.quarantine).max(history_floor(claim, history))
}

/// What every tenure that is acquired in a history starts above, because of what was lost before it
/// began: tenures whose very record is gone.
#[must_use]
pub fn history_floor(claim: &Claim, history: &History) -> UnixMs {
    let after = |began: UnixMs, promised: u64| match began {
        0 => 0,
        _ => began.saturating_add(STORE_CLOCK_BACK_MS + CLOCK_BOUND_MS + promised),
    };
    let promised = promised(claim);
    let unsettled = match uses_times(claim.group(), claim.window_ms) {
        true => promised.min(UNSETTLED_MS),
        false => promised,
    };
    after(history.since, unsettled).max(after(history.forked, promised))
}

/// How much further than its record says the last holder of a slot may have gone, in a history that
/// lacks the end of the one before. A release is the holder's own word, and its last.
fn lost_slack(record: &Record, claim: &Claim, history: &History) -> u64 {
    let is_whole = history.since == 0 || record.released;
    if is_whole { 0 } else { promised(claim).min(UNSETTLED_MORE_MS) }
}

/// For how long after an acknowledgement its holder may act on it: workers and scopes use times up
/// to a window, and leaders lead for their time to live.
fn promised(claim: &Claim) -> u64 {
    match claim.group() {
        Group::Workers => window(claim.window_ms),
        Group::Elections | Group::Scopes | Group::Keys => {
            window(claim.window_ms).max(millis(claim.ttl))
        }
    }
}

/// Whether a slot that was acquired over this may be used only once that has settled.
#[must_use]
pub fn is_takeover(found: &Found, claim: &Claim, history: &History) -> bool {
    let was_left = match found {
        Found::New => false,
        Found::Lost => true,
        Found::Known(record) => !record.released,
    };
    was_left && may_lose_times(claim.group(), claim.window_ms, history)
}

/// Whether what is acknowledged may be lost, and what newcomers wait for does not cover all of it.
fn may_lose_times(group: Group, window_ms: u64, history: &History) -> bool {
    history.settles() && uses_times(group, window_ms)
}

/// Whether more is promised than newcomers wait for when what has settled is kept. A holder of a worker
/// goes on in any later history, however long it was away; leaders and those of scopes give up by
/// themselves when their time is over.
fn uses_times(group: Group, window_ms: u64) -> bool {
    group == Group::Workers || window(window_ms) > UNSETTLED_MS
}

/// Whether a record that carries a claim's nonce still is the claim's.
#[must_use]
pub fn is_served(record: &Record, history: &History) -> bool {
    history.id.is_empty() || outlasted(record.expires, history)
}

/// Whether a holder goes on in a history that may not be the one which acknowledged it last. Where
/// takeovers settle before they are used, nobody else can have used the slot as long as the record is
/// the holder's.
#[must_use]
pub fn goes_on(tenure: &Tenure, history: &History) -> bool {
    history.id == tenure.settling.history
        || tenure.settling.history.is_empty()
        || (tenure.settling.settles && history.settles())
        || outlasted(tenure.expires, history)
}

/// Whether a presence that ended then still lasted when a history began that may lack takeovers which
/// were used: nobody can have been let in before, and whoever was let in since is in the record.
fn outlasted(expires: Option<UnixMs>, history: &History) -> bool {
    let end = history.forked.saturating_add(STORE_CLOCK_BACK_MS);
    history.forked == 0 || expires.is_some_and(|expires| end < expires)
}

/// Up to when a tenure that was acquired just now may be used.
#[must_use]
pub fn usable_at_first(
    horizon: UnixMs,
    claim: &Claim,
    has_settled: bool,
    history: &History,
) -> UnixMs {
    let is_capped = history.is_capped && may_lose_times(claim.group(), claim.window_ms, history);
    match has_settled || !is_capped {
        true => horizon,
        false => horizon.min(claim.now.saturating_add(UNSETTLED_MS)),
    }
}

/// Up to when a tenure may be used after an extension that was acknowledged in a history, at a time of
/// the store's clock if it has one.
#[must_use]
pub fn usable_then(
    tenure: &Tenure,
    settling: &Settling,
    window_ms: u64,
    history: &History,
    clock: Option<UnixMs>,
) -> UnixMs {
    let group = tenure.slot.group();
    let most = match (history.is_capped && may_lose_times(group, window_ms, history), clock) {
        (true, _) => settling.settled.saturating_add(UNSETTLED_MORE_MS),
        // Should it be lost, those who come later count from when the store lost it, and know nothing
        // of a clock that went astray since the slot was acquired.
        (false, Some(clock)) if !history.id.is_empty() => {
            clock.saturating_add(CLOCK_BOUND_MS + window(window_ms))
        }
        (false, _) => UnixMs::MAX,
    };
    tenure.horizon.min(most).max(tenure.usable)
}

impl Settling {
    /// What has settled of a tenure in a look at a history, after a horizon was acknowledged at a
    /// time of the store's clock.
    #[must_use]
    pub fn after(&self, history: &History, acknowledged: Option<(UnixMs, UnixMs)>) -> Self {
        let settles = history.settles();
        let mut next = Self { history: history.id.clone(), settles, ..self.clone() };
        if next.history != self.history {
            // Whether it was in time is not known any more.
            next.pending.clear();
        }
        let up_to = history.settled.unwrap_or(0);
        for (_, horizon) in next.pending.extract_if(.., |(written, _)| *written <= up_to) {
            next.settled = next.settled.max(horizon);
        }
        // If there are many the older ones stay: they settle first.
        next.pending.truncate(PENDING_MAX - 1);
        next.pending.extend(acknowledged.filter(|_| settles));
        next
    }
}

/// How many horizons that may still be lost a tenure remembers.
const PENDING_MAX: usize = 16;

/// What a free slot is good for.
#[must_use]
pub fn availability(found: &Found, claim: &Claim, history: &History) -> SlotAvailability {
    let floor = floor_of(found, claim, history);
    let blocked_by_all = claim.quarantine.max(history_floor(claim, history));
    let ahead = floor.saturating_sub(claim.now);
    if floor <= claim.now {
        SlotAvailability::Passed
    } else if ahead <= RUN_AHEAD_MS {
        SlotAvailability::Ahead
    } else if ahead <= window(claim.window_ms) + RUN_AHEAD_MS + UNSETTLED_MORE_MS
        || blocked_by_all >= floor
    {
        SlotAvailability::Blocked { floor }
    } else {
        SlotAvailability::Poisoned { floor }
    }
}

/// The record of a new tenure in a slot that nobody is present in.
///
/// # Errors
/// If the slot cannot be taken now; what it is good for instead.
pub fn acquire(
    found: &Found,
    claim: &Claim,
    history: &History,
) -> Result<Record, SlotAvailability> {
    match availability(found, claim, history) {
        SlotAvailability::Passed | SlotAvailability::Ahead => {}
        availability @ (SlotAvailability::Blocked { .. } | SlotAvailability::Poisoned { .. }) => {
            return Err(availability);
        }
    }
    let floor = floor_of(found, claim, history);
    let old_token = match found {
        Found::Known(record) => record.token.0,
        Found::New | Found::Lost => 0,
    };
    Ok(Record {
        token: Token(claim.now.max(old_token.saturating_add(1))),
        nonce: Some(claim.nonce),
        holder: claim.holder.clone(),
        floor,
        horizon: floor.max(capped(claim.ask, claim.now, claim.window_ms)),
        renewed: claim.now,
        expires: None,
        released: false,
        info: claim.info.clone(),
    })
}

/// A record that was made for a slot, with a token above those of all that were forgotten: whether
/// the slot is one of them is not known any more.
#[must_use]
pub fn above_forgotten(record: Record, found: &Found, meta: &Meta) -> Record {
    let lowest = match found {
        Found::New | Found::Lost => meta.token_floor.0.saturating_add(1),
        Found::Known(_) => 0,
    };
    Record { token: record.token.max(Token(lowest)), ..record }
}

/// For how long after its last holder a slot cannot be forgotten. What that holder started may still
/// run, and only the record lets the next one wait for it; and clocks differ.
pub const FORGET_GUARD_MS: u64 = 2 * CLOCK_BOUND_MS;

/// The time after which a slot with this record can be forgotten, if nobody is present.
///
/// Times that were used must have passed by every clock that is trusted. When the holder was last heard
/// of counts too, unless its clock was plainly wrong.
#[must_use]
pub fn forgettable_after(record: &Record, now: UnixMs) -> UnixMs {
    let heard = if is_plainly_wrong(record.renewed, now) { 0 } else { record.renewed };
    heard.max(record.horizon).saturating_add(FORGET_GUARD_MS)
}

/// Whether a time is further ahead than anybody whose clock is right can have put it: beyond the
/// longest window, with all that times may run ahead and clocks may differ.
#[must_use]
pub const fn is_plainly_wrong(time: UnixMs, now: UnixMs) -> bool {
    time > now.saturating_add(AHEAD_MAX_MS)
}

/// See [`is_plainly_wrong`].
const AHEAD_MAX_MS: u64 = WINDOW_MAX_MS + UNSETTLED_MORE_MS + RUN_AHEAD_MS + 2 * CLOCK_BOUND_MS;

/// The record after an extension.
///
/// # Errors
/// If the tenure is over.
pub fn extend(record: &Record, tenure: &Tenure, ask: &Ask) -> Result<Record, Loss> {
    belongs(record, tenure)?;
    let mut extended = record.clone();
    // What was acknowledged counts even if the record has forgotten it.
    let promised = record.horizon.max(tenure.horizon);
    extended.horizon = promised.max(capped(ask.horizon, ask.now, ask.window_ms));
    extended.renewed = ask.now;
    Ok(extended)
}

/// The record after a release: the horizon comes down to the last time that was used.
///
/// # Errors
/// If the tenure is over already.
pub fn release(record: &Record, tenure: &Tenure, last: UnixMs) -> Result<Record, Loss> {
    belongs(record, tenure)?;
    let mut released = record.clone();
    released.nonce = None;
    released.released = true;
    released.expires = None;
    // What was acknowledged may have been used, even if the record has forgotten it.
    let promised = record.horizon.max(tenure.horizon).max(record.floor);
    released.horizon = last.clamp(record.floor, promised);
    Ok(released)
}

/// The tenure that a record gives to whoever wrote it, in a namespace with this incarnation.
#[must_use]
pub fn tenure(
    slot: Slot,
    nonce: Nonce,
    version: Version,
    record: Record,
    incarnation: Nonce,
) -> Tenure {
    Tenure {
        slot,
        token: record.token,
        nonce,
        holder: record.holder,
        info: record.info,
        version,
        floor: record.floor,
        horizon: record.horizon,
        renewed: record.renewed,
        usable: record.horizon,
        expires: record.expires,
        store_now: None,
        incarnation,
        settling: Settling::default(),
    }
}

impl Census {
    /// The census of one slot.
    #[must_use]
    pub fn of(availability: SlotAvailability) -> Self {
        let mut census = Self::default();
        census.count(availability);
        census
    }

    /// Counts a slot that could not be taken.
    pub fn count(&mut self, availability: SlotAvailability) {
        match availability {
            SlotAvailability::Passed | SlotAvailability::Ahead => {}
            SlotAvailability::Blocked { floor } => {
                self.blocked += 1;
                self.next_floor = Some(self.next_floor.map_or(floor, |known| known.min(floor)));
            }
            SlotAvailability::Poisoned { .. } => self.poisoned += 1,
        }
    }
}

fn belongs(record: &Record, tenure: &Tenure) -> Result<(), Loss> {
    match record.nonce {
        Some(nonce) if nonce == tenure.nonce && record.token == tenure.token => {
            // What has settled cannot be lost: the store was set back.
            let is_older = record.horizon < tenure.settling.settled;
            if is_older { Err(Loss::Regressed) } else { Ok(()) }
        }
        None if record.token == tenure.token => Err(Loss::Released),
        // Tokens rise, and a successor starts above all that was acknowledged before it: a record
        // that says otherwise has forgotten.
        _ if record.token < tenure.token => Err(Loss::Regressed),
        _ if record.floor < tenure.usable => {
            Err(Loss::Overlapped { token: record.token, holder: record.holder.clone() })
        }
        _ => Err(Loss::Superseded { token: record.token, holder: record.holder.clone() }),
    }
}

fn capped(ask: UnixMs, now: UnixMs, window_ms: u64) -> UnixMs {
    ask.min(now.saturating_add(window(window_ms)))
}

fn window(window_ms: u64) -> u64 {
    window_ms.min(WINDOW_MAX_MS)
}

#[cfg(test)]
mod tests;
