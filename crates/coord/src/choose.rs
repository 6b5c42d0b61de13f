//! Which free worker to take: the least recently used, at random among equals.

use std::collections::HashMap;

use crate::record::Version;
use crate::rules::{Outlook, floor_of, outlook};
use crate::slot::Slot;
use crate::store::{Census, Claim, Entry, Found, Presence};

/// A slot worth trying, as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Which slot.
    pub slot: Slot,
    /// The version that was read; 0 if it does not exist.
    pub version: Version,
    /// What was read.
    pub found: Found,
}

/// The free slots of a pool in the order to try them, and a count of those that cannot be taken.
///
/// The favourite comes first if its floor has passed; then all whose floor has passed and then
/// those a little ahead, by floor: the longest unused first, so that skewed clocks cost least.
/// The claim's nonce breaks ties, so that many who start at once do not all want the same slot.
#[must_use]
pub fn candidates(
    entries: Vec<Entry>,
    first: u32,
    last: u32,
    favourite: Option<u32>,
    claim: &Claim,
) -> (Vec<Candidate>, Census) {
    let mut known: HashMap<u32, Entry> =
        entries.into_iter().filter_map(|entry| Some((entry.slot.number()?, entry))).collect();
    let mut census = Census::default();
    let mut ranked = Vec::new();
    for number in first..=last {
        let (version, found) = match known.remove(&number) {
            Some(Entry { presence: Presence::Held { .. }, .. }) => {
                census.held += 1;
                continue;
            }
            Some(entry) => (entry.version, entry.found),
            None => (Version(0), Found::New),
        };
        let outlook = outlook(&found, claim);
        if matches!(outlook, Outlook::Blocked { .. } | Outlook::Poisoned { .. }) {
            census.count(outlook);
            continue;
        }
        let loved = favourite == Some(number) && outlook == Outlook::Passed;
        let rank = (!loved, floor_of(&found, claim), shuffle(claim.nonce.bits(), number));
        ranked.push((rank, Candidate { slot: Slot::worker(number), version, found }));
    }
    ranked.sort_unstable_by_key(|(rank, _)| *rank);
    (ranked.into_iter().map(|(_, candidate)| candidate).collect(), census)
}

/// The worker that a holder of this name had last, if it is free and its floor has passed.
#[must_use]
pub fn last_worker_of(holder: &str, entries: &[Entry], claim: &Claim) -> Option<u32> {
    let had = |entry: &Entry| match &entry.found {
        Found::Known(record) if record.holder == holder => {
            Some((record.renewed, record.token, entry.slot.number()?))
        }
        _ => None,
    };
    let is_ready = |entry: &&Entry| {
        entry.presence == Presence::Free && outlook(&entry.found, claim) == Outlook::Passed
    };
    entries.iter().filter(is_ready).filter_map(had).max().map(|(_, _, worker)| worker)
}

/// A number that looks random for each pair (Fibonacci hashing of the two).
#[must_use]
pub fn shuffle(nonce: u128, number: u32) -> u64 {
    let folded =
        u64::try_from((nonce ^ (nonce >> 64)) & u128::from(u64::MAX)).expect("masked to 64 bits");
    let mixed = (folded ^ u64::from(number)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed ^ (mixed >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::nonce::Nonce;
    use crate::record::{FORMAT, Meta, Record, Token, UnixMs, Versioned};

    const NOW: UnixMs = 1_000_000;

    fn entry(worker: u32, holder: &str, renewed: UnixMs, horizon: UnixMs) -> Entry {
        let record = Record {
            token: Token(renewed),
            nonce: None,
            holder: holder.into(),
            floor: 0,
            horizon,
            renewed,
            expires: None,
            info: BTreeMap::new(),
        };
        let (slot, found) = (Slot::worker(worker), Found::Known(record));
        Entry { slot, version: Version(1), found, presence: Presence::Free }
    }

    fn chosen(entries: &[Entry]) -> Option<u32> {
        let meta = Meta {
            format: FORMAT,
            layout: "x".into(),
            last_worker: 9,
            window_ms: 600_000,
            ..Meta::blank(Nonce::from_bits(1), 0)
        };
        let claim = Claim::to_judge(&Versioned { version: Version(1), value: meta }, NOW);
        last_worker_of("web1", entries, &claim)
    }

    #[test]
    fn the_last_worker_of_a_name_is_the_one_renewed_last() {
        let entries =
            [entry(3, "web1", 10, 20), entry(5, "web1", 30, 40), entry(7, "web2", 50, 60)];
        assert_eq!(chosen(&entries), Some(5));
        assert_eq!(chosen(&entries[2..]), None);
        assert_eq!(chosen(&[]), None);
    }

    #[test]
    fn a_worker_that_is_held_or_whose_floor_has_not_passed_is_not_asked_for() {
        let mut held = entry(5, "web1", 30, 40);
        held.presence = Presence::Held { expires_in: None };
        let (older, ahead) = (entry(3, "web1", 10, 20), entry(8, "web1", 60, NOW + 1));
        assert_eq!(chosen(&[older, held, ahead.clone()]), Some(3));
        assert_eq!(chosen(&[ahead]), None);
    }
}
