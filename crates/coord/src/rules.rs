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
//!
//! So the times of different tenures are disjoint, with no assumption about clocks, delays or
//! pauses. The model in `crates/frazil/tests` searches all of this exhaustively in the small.

use crate::record::{Record, Token, UnixMs, Version};
use crate::slot::Slot;
use crate::store::{Ask, Census, Claim, Found, Loss, Tenure};

/// How far ahead of now a floor may be for a slot to be taken: the holder's times then run ahead
/// by as much. More would be a lie about the time.
pub const RUN_AHEAD_MS: u64 = 2000;
/// No window is longer than this, whatever meta says: meta may be gone or wrong.
pub const WINDOW_MAX_MS: u64 = 3_600_000;

/// What a slot nobody is present in is good for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outlook {
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

/// The floor of whoever acquires the slot next.
#[must_use]
pub fn floor_of(found: &Found, claim: &Claim) -> UnixMs {
    let recorded = match found {
        Found::New => 0,
        // What was promised to its last holder is unknown, but no more than a window from now.
        Found::Lost => claim.now.saturating_add(window(claim.window_ms)),
        Found::Known(record) => record.horizon,
    };
    recorded.max(claim.quarantine)
}

/// What a free slot is good for.
#[must_use]
pub fn outlook(found: &Found, claim: &Claim) -> Outlook {
    let floor = floor_of(found, claim);
    let ahead = floor.saturating_sub(claim.now);
    if floor <= claim.now {
        Outlook::Passed
    } else if ahead <= RUN_AHEAD_MS {
        Outlook::Ahead
    } else if ahead <= window(claim.window_ms) + RUN_AHEAD_MS || claim.quarantine >= floor {
        Outlook::Blocked { floor }
    } else {
        Outlook::Poisoned { floor }
    }
}

/// The record of a new tenure in a slot that nobody is present in.
///
/// # Errors
/// If the slot cannot be taken now; what it is good for instead.
pub fn acquire(found: &Found, claim: &Claim) -> Result<Record, Outlook> {
    match outlook(found, claim) {
        Outlook::Passed | Outlook::Ahead => {}
        outlook @ (Outlook::Blocked { .. } | Outlook::Poisoned { .. }) => return Err(outlook),
    }
    let floor = floor_of(found, claim);
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
        info: claim.info.clone(),
    })
}

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
    released.expires = None;
    released.horizon = last.clamp(record.floor, record.horizon.max(record.floor));
    Ok(released)
}

/// The tenure that a record gives to whoever wrote it.
#[must_use]
pub fn tenure(claim: &Claim, slot: Slot, version: Version, record: &Record) -> Tenure {
    Tenure {
        slot,
        token: record.token,
        nonce: claim.nonce,
        version,
        floor: record.floor,
        horizon: record.horizon,
        expires: record.expires,
        store_now: None,
        lineage: None,
    }
}

impl Census {
    /// The census of one slot.
    #[must_use]
    pub fn of(outlook: Outlook) -> Self {
        let mut census = Self::default();
        census.count(outlook);
        census
    }

    /// Counts a slot that could not be taken.
    pub fn count(&mut self, outlook: Outlook) {
        match outlook {
            Outlook::Passed | Outlook::Ahead => {}
            Outlook::Blocked { floor } => {
                self.blocked += 1;
                self.next_floor = Some(self.next_floor.map_or(floor, |known| known.min(floor)));
            }
            Outlook::Poisoned { .. } => self.poisoned += 1,
        }
    }
}

fn belongs(record: &Record, tenure: &Tenure) -> Result<(), Loss> {
    match record.nonce {
        Some(nonce) if nonce == tenure.nonce && record.token == tenure.token => Ok(()),
        None if record.token == tenure.token => Err(Loss::Released),
        // Tokens rise, and a successor starts above all that was acknowledged before it: a record
        // that says otherwise has forgotten.
        _ if record.token < tenure.token => Err(Loss::Regressed),
        _ if record.floor < tenure.horizon => {
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
