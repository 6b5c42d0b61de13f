//! The choice of a free worker: the least recently used, at random among equals.

use std::collections::HashMap;

use crate::lease::{Census, Claim};
use crate::rules::{SlotAvailability, availability, floor_of, is_takeover};
use crate::slot::Slot;
use crate::store::{Entry, Found, FreeSlots, History, Presence, Wanted};

/// The free workers of a range in the order to try them, and a count of those that cannot be taken.
///
/// The favourite comes first if its floor has passed; then all whose floor has passed and then
/// those a little ahead, by floor: the longest unused first, so that skewed clocks cost least. Where
/// writes settle, those whose holder did not release them come last.
/// The nonce breaks ties, so that many who start at once do not all want the same worker.
#[must_use]
pub(crate) fn rank_free(
    free_slots: FreeSlots,
    wanted: &Wanted,
    claim: &Claim,
) -> (Vec<Entry>, Census) {
    let size = wanted.last.saturating_sub(wanted.first).saturating_add(1);
    let FreeSlots { look, is_complete, held } = free_slots;
    let history = look.history;
    let mut census = Census::default();
    let mut ranked = Vec::new();
    for entry in in_range(look.entries, wanted, is_complete) {
        if entry.presence != Presence::Free {
            census.held += 1;
            continue;
        }
        let Some(number) = entry.slot.number() else { continue };
        let availability = availability(&entry.found, claim, &history);
        if matches!(
            availability,
            SlotAvailability::Blocked { .. } | SlotAvailability::Poisoned { .. }
        ) {
            census.count(availability);
            continue;
        }
        let is_favourite =
            wanted.favourite == Some(number) && availability == SlotAvailability::Passed;
        // What may be used only once it has settled is waited for.
        let waits = is_takeover(&entry.found, claim, &history);
        let floor = floor_of(&entry.found, claim, &history);
        ranked.push(((waits, !is_favourite, floor, shuffle(wanted.nonce.bits(), number)), entry));
    }
    if !is_complete {
        // Those that were not looked at are no better than the best that were.
        census.held = held.max(census.held).min(size);
        census.blocked = size - census.held - census.poisoned.min(size - census.held);
    }
    ranked.sort_unstable_by_key(|(rank, _)| *rank);
    (ranked.into_iter().map(|(_, entry)| entry).collect(), census)
}

/// The entries of a range; if all were looked at, those that were never used too.
fn in_range(entries: Vec<Entry>, wanted: &Wanted, is_complete: bool) -> Vec<Entry> {
    let range = wanted.first..=wanted.last;
    let mut known: HashMap<u32, Entry> = entries
        .into_iter()
        .filter_map(|entry| Some((entry.slot.number()?, entry)))
        .filter(|(number, _)| range.contains(number))
        .collect();
    if !is_complete {
        return known.into_values().collect();
    }
    let unused = |number| Entry::unused(Slot::worker(number));
    range.map(|number| known.remove(&number).unwrap_or_else(|| unused(number))).collect()
}

/// A way round a range that visits each of its workers once: how far from the first it begins, and how
/// far each step goes. Both follow from the nonce, so that those who begin at one worker part at once:
/// of many who look at the same moment, few find nothing but what others take.
#[must_use]
pub(crate) fn walk(wanted: &Wanted) -> (u64, u64) {
    let size = u64::from(wanted.last.saturating_sub(wanted.first)) + 1;
    let below_size = |bits: u128| u64::try_from(bits % u128::from(size)).unwrap_or(0);
    let bits = wanted.nonce.bits();
    // A step that shares no divisor with the size leaves no worker out.
    let steps = below_size(bits >> 64) + 1..=size + 1;
    let step = steps.into_iter().find(|step| common_divisor(*step, size) == 1).unwrap_or(1);
    (below_size(bits), step)
}

fn common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { common_divisor(b, a % b) }
}

/// The worker that a holder of this name had last, if it is free and its floor has passed.
#[must_use]
pub(crate) fn last_worker_of(holder: &str, entries: &[Entry], claim: &Claim) -> Option<u32> {
    let had = |entry: &Entry| match &entry.found {
        Found::Known(record) if record.holder == holder => {
            Some((record.renewed, record.token, entry.slot.number()?))
        }
        _ => None,
    };
    let is_ready = |entry: &&Entry| {
        entry.presence == Presence::Free
            && availability(&entry.found, claim, &History::default()) == SlotAvailability::Passed
    };
    entries.iter().filter(is_ready).filter_map(had).max().map(|(_, _, worker)| worker)
}

/// A number that looks random for each pair (Fibonacci hashing of the two).
#[must_use]
pub(crate) fn shuffle(nonce: u128, number: u32) -> u64 {
    let folded =
        u64::try_from((nonce ^ (nonce >> 64)) & u128::from(u64::MAX)).expect("masked to 64 bits");
    let mixed = (folded ^ u64::from(number)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed ^ (mixed >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9)
}

#[cfg(test)]
mod tests;
