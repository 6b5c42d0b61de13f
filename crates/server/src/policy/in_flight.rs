//! Requests in flight: how many are answered at a time, of all callers and of each key.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use frazil_wire::{ApiError, Reason};

/// Counters that keys are spread over: few keys share one, and counting costs no search.
const SHARES: usize = 64;
/// The part of the limit that each key has for itself, whatever others hold.
const SHARE_OF_LIMIT: usize = 8;
/// How far beyond the limit these parts go together.
const LIMITS_IN_ALL: usize = 2;

/// Requests in flight.
#[derive(Debug)]
pub(crate) struct InFlight {
    all: AtomicUsize,
    /// Those of each key, by its number.
    by_key: [AtomicUsize; SHARES],
}

/// One of them, for as long as it is answered.
#[derive(Debug)]
pub(crate) struct InFlightPermit<'a> {
    all: &'a AtomicUsize,
    own: &'a AtomicUsize,
}

impl Default for InFlight {
    fn default() -> Self {
        Self { all: AtomicUsize::new(0), by_key: [const { AtomicUsize::new(0) }; SHARES] }
    }
}

impl InFlight {
    /// Counts a request of the key with this number, unless there are too many. One key can fill all places;
    /// the others then have some beyond them.
    pub(crate) fn enter(&self, most: usize, key: u64) -> Result<InFlightPermit<'_>, ApiError> {
        let (all, own) = (&self.all, &self.by_key[share(key)]);
        // Relaxed: a limit that may be missed by those who come at the same moment.
        let before = all.fetch_add(1, Ordering::Relaxed);
        let own_before = own.fetch_add(1, Ordering::Relaxed);
        let answering = InFlightPermit { all, own };
        let has_share = own_before < (most / SHARE_OF_LIMIT).max(1);
        if before < most || (has_share && before < most.saturating_mul(LIMITS_IN_ALL)) {
            return Ok(answering);
        }
        let detail = format_args!("{before} requests are being answered already");
        Err(ApiError::new(Reason::Overloaded, detail).retry_after(Duration::from_millis(100)))
    }

    pub(crate) fn count(&self) -> usize {
        self.all.load(Ordering::Relaxed)
    }
}

impl Drop for InFlightPermit<'_> {
    fn drop(&mut self) {
        self.own.fetch_sub(1, Ordering::Relaxed);
        self.all.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The counter of a key. Numbers are hashes, so any bits of them do.
fn share(key: u64) -> usize {
    usize::from(key.to_le_bytes()[0]) % SHARES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beyond_the_limit_requests_are_sent_away_and_not_counted() {
        let in_flight = InFlight::default();
        let first = in_flight.enter(1, 0).unwrap();
        assert_eq!(in_flight.enter(1, 0).unwrap_err().reason, Reason::Overloaded);
        assert_eq!(in_flight.count(), 1);
        drop(first);
        assert!(in_flight.enter(1, 0).is_ok());
    }

    #[test]
    fn a_key_that_fills_all_places_leaves_others_their_share() {
        let (in_flight, most) = (InFlight::default(), 16);
        let flood: Vec<_> = (0..most).map(|_| in_flight.enter(most, 1).unwrap()).collect();
        assert!(in_flight.enter(most, 1).is_err(), "the flood has more than its share");
        let others = [2, 2, 3, 3].map(|key| in_flight.enter(most, key).unwrap());
        assert!(in_flight.enter(most, 2).is_err(), "two of sixteen are its share");
        drop(flood);
        assert!(in_flight.enter(most, 2).is_ok(), "there is room, whoever asks");
        assert_eq!(in_flight.count(), others.len());
    }

    #[test]
    fn the_shares_together_are_no_more_than_the_limit_again() {
        let (in_flight, most) = (InFlight::default(), 16);
        let held: Vec<_> = (0..60).filter_map(|key| in_flight.enter(most, key).ok()).collect();
        assert_eq!(held.len(), 2 * most);
        drop(held);
        assert!(in_flight.by_key.iter().all(|own| own.load(Ordering::Relaxed) == 0));
    }
}
