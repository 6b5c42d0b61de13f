//! Taking a slot: a certain one, or a worker of a range.

use std::collections::HashMap;
use std::ops::RangeInclusive;

use super::cell::LockedCell;
use super::{Shared, Trouble};
use crate::choose::{candidates, shuffle};
use crate::nonce::Nonce;
use crate::record::{Record, Version};
use crate::rules::{self, Outlook, outlook};
use crate::slot::{Group, Slot};
use crate::lease::{Acquired, Census, Claim};
use crate::store::Found;

/// Numbers to try blindly before all are looked at. A guess costs microseconds, a look at a pool of
/// 1,024 milliseconds; while a pool fills up, one claim in 65 needs that look.
const GUESSES: u32 = 64;

impl Shared {
    /// Takes the favourite, or a number guessed from the nonce, or else the one that was unused for
    /// longest.
    pub(super) fn pick(
        &self,
        present: &mut HashMap<Slot, (Nonce, LockedCell)>,
        range: RangeInclusive<u32>,
        favourite: Option<u32>,
        claim: &Claim,
    ) -> Result<Acquired, Trouble> {
        if range.is_empty() {
            return Ok(Acquired::Full(Census::default()));
        }
        let size = u64::from(range.end() - range.start()) + 1;
        let guess = |index: u32| {
            let offset = shuffle(claim.nonce.bits(), index) % size;
            range.start() + u32::try_from(offset).expect("less than the size of the range")
        };
        let favourite = favourite.filter(|number| range.contains(number));
        for number in favourite.into_iter().chain((0..GUESSES).map(guess)) {
            let slot = Slot::worker(number);
            let (_, found) = self.cell(&slot).find()?;
            if outlook(&found, claim) == Outlook::Passed && found != Found::Lost {
                let taken = self.take(present, &slot, None, claim)?;
                if matches!(taken, Acquired::Held(_)) {
                    return Ok(taken);
                }
            }
        }
        let entries = self.list(Group::Workers)?;
        let (best, mut census) =
            candidates(entries, *range.start(), *range.end(), favourite, claim);
        for candidate in best {
            let taken = self.take(present, &candidate.slot, Some(candidate.version), claim)?;
            if matches!(taken, Acquired::Held(_)) {
                return Ok(taken);
            }
            // Somebody was faster; it counts as what it is now.
            match taken {
                Acquired::Full(now) => census.add(now),
                _ => census.held += 1,
            }
        }
        Ok(Acquired::Full(census))
    }

    /// Takes a slot if nobody is present and it is what was read (`None`: whatever it is).
    pub(super) fn take(
        &self,
        present: &mut HashMap<Slot, (Nonce, LockedCell)>,
        slot: &Slot,
        read: Option<Version>,
        claim: &Claim,
    ) -> Result<Acquired, Trouble> {
        let cell = self.cell(slot);
        let (version, found) = cell.find()?;
        if let Some((nonce, _)) = present.get(slot) {
            return Ok(match found {
                Found::Known(record) if *nonce == claim.nonce => {
                    Acquired::Held(rules::tenure(claim, slot.clone(), version, &record))
                }
                _ => Acquired::Taken,
            });
        }
        // Before the lock file is created: a refusal leaves nothing behind.
        if let Err(refusal) = next_record(version, &found, read, claim) {
            return Ok(if cell.is_locked()? { Acquired::Taken } else { refusal.into() });
        }
        let Some(locked) = cell.try_lock()? else { return Ok(Acquired::Taken) };
        let (version, found) = locked.find()?;
        let record = match next_record(version, &found, read, claim) {
            Ok(record) => record,
            Err(refusal) => return Ok(refusal.into()),
        };
        let version = locked.write(version, &record)?;
        let tenure = rules::tenure(claim, slot.clone(), version, &record);
        present.insert(slot.clone(), (claim.nonce, locked));
        Ok(Acquired::Held(tenure))
    }
}

/// What to write for the claim.
fn next_record(
    version: Version,
    found: &Found,
    read: Option<Version>,
    claim: &Claim,
) -> Result<Record, Refusal> {
    if let Found::Known(record) = found
        && record.nonce == Some(claim.nonce)
    {
        // It was carried out, and its end was not heard of, or presence has lapsed since. To be
        // written again: the first time may not have reached the disk.
        return Ok(record.clone());
    }
    if read.is_some_and(|read| read != version) {
        return Err(Refusal::Outdated);
    }
    rules::acquire(found, claim).map_err(Refusal::NotNow)
}

/// Why a slot that is free is not taken.
enum Refusal {
    /// It is not what was read.
    Outdated,
    NotNow(Outlook),
}

impl From<Refusal> for Acquired {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Outdated => Self::Taken,
            Refusal::NotNow(outlook) => Self::Full(Census::of(outlook)),
        }
    }
}
