//! The retry budget: never more retries than there were requests.

use std::sync::atomic::{AtomicU32, Ordering};

/// Credit for retries beyond this is not saved up: a burst of them after an hour of peace is a
/// storm all the same.
const SAVED_MAX: u32 = 20;

/// Every request earns one retry, for itself or for another.
#[derive(Debug)]
pub struct Budget {
    saved: AtomicU32,
}

/// With all that is saved up at most.
impl Default for Budget {
    fn default() -> Self {
        Self { saved: AtomicU32::new(SAVED_MAX) }
    }
}

impl Budget {
    /// With what it takes to ask every endpoint once at the very beginning.
    pub(crate) fn new(endpoints: usize) -> Self {
        let spare = u32::try_from(endpoints.saturating_sub(1)).unwrap_or(SAVED_MAX);
        Self { saved: AtomicU32::new(spare.min(SAVED_MAX)) }
    }

    /// Notes a request.
    pub fn earn(&self) {
        self.change(|saved| Some((saved + 1).min(SAVED_MAX)));
    }

    /// Takes the credit for one retry, if there is some.
    #[must_use]
    pub fn spend(&self) -> bool {
        self.change(|saved| saved.checked_sub(1))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.saved.load(Ordering::Relaxed) == 0
    }

    fn change(&self, how: impl FnMut(u32) -> Option<u32>) -> bool {
        // Relaxed: a number of its own, with which nothing else is ordered.
        self.saved.try_update(Ordering::Relaxed, Ordering::Relaxed, how).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retries_never_exceed_requests_and_little_is_saved() {
        let budget = Budget::new(1);
        assert!(!budget.spend(), "nothing was earned yet");
        for _ in 0..1000 {
            budget.earn();
        }
        let saved = (0..1000).filter(|_| budget.spend()).count();
        assert_eq!(saved, 20);
        let mut retries = 0;
        for _ in 0..1000 {
            budget.earn();
            retries += (0..3).filter(|_| budget.spend()).count();
        }
        assert_eq!(retries, 1000);
        assert!(Budget::new(3).spend() && budget.is_empty());
    }
}
