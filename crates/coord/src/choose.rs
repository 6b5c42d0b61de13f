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

/// A number that looks random for each pair (Fibonacci hashing of the two).
#[must_use]
pub fn shuffle(nonce: u128, number: u32) -> u64 {
    let folded =
        u64::try_from((nonce ^ (nonce >> 64)) & u128::from(u64::MAX)).expect("masked to 64 bits");
    let mixed = (folded ^ u64::from(number)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed ^ (mixed >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9)
}
