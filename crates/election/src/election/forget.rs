//! Removing elections that nobody holds any more.

use frazil_coord::rules::CLOCK_BOUND_MS;
use frazil_coord::time::unix_ms;
use frazil_coord::{Entry, Error, ErrorKind, Found, Group, Presence, Put, Slot, UnixMs};

use super::Elections;

/// What became of an election that was to be forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forgotten {
    /// It is gone, as if it had never been.
    Done,
    /// Somebody leads it. It stays.
    Held,
    /// Somebody led it a moment ago, and a clock that is a little behind would give its token again. It
    /// stays.
    Recent,
    /// There is no such election.
    Unknown,
}

/// Somebody may come and go between a look and the removal; often is unheard of.
const ROUNDS_MAX: usize = 5;

impl Elections {
    /// Removes what the store knows of an election that nobody leads, or led within the last seconds.
    /// Tokens follow time, so that the next leader's is larger all the same.
    ///
    /// # Errors
    /// If the store does not answer.
    pub async fn forget(&self, name: &str) -> Result<Forgotten, Error> {
        let Ok(slot) = Slot::named(Group::Elections, name) else { return Ok(Forgotten::Unknown) };
        for _ in 0..ROUNDS_MAX {
            let look = self.store().read(std::slice::from_ref(&slot)).await?;
            let unused = Entry::unused(slot.clone());
            let Some(entry) = look.entry(&slot).filter(|entry| **entry != unused) else {
                return Ok(Forgotten::Unknown);
            };
            if entry.presence != Presence::Free {
                return Ok(Forgotten::Held);
            }
            if is_recent(entry, look.clock.unwrap_or_else(unix_ms)) {
                return Ok(Forgotten::Recent);
            }
            if let Put::Done(_) = self.store().forget(&slot, entry.version).await? {
                return Ok(Forgotten::Done);
            }
        }
        let why = "others wrote at the same time again and again";
        Err(Error::new(ErrorKind::Unavailable, "forget", self.store(), why))
    }
}

/// Whether clocks that are trusted may show a time that the last leader's token has reached already.
fn is_recent(entry: &Entry, now: UnixMs) -> bool {
    match &entry.found {
        Found::Known(record) => {
            let last = record.token.0.max(record.renewed).max(record.horizon);
            last.saturating_add(2 * CLOCK_BOUND_MS) >= now
        }
        Found::New | Found::Lost => false,
    }
}
