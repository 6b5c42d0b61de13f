//! How many requests are answered at a time.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use frazil_wire::{ApiError, Reason};

/// Requests in flight.
#[derive(Debug, Default)]
pub(crate) struct InFlight(AtomicUsize);

/// One of them, for as long as it is answered.
#[derive(Debug)]
pub(crate) struct Answering<'a>(&'a InFlight);

impl InFlight {
    /// Counts a request, unless there are too many.
    pub(crate) fn enter(&self, most: usize) -> Result<Answering<'_>, ApiError> {
        // Relaxed: a limit that may be missed by those who come at the same moment.
        let before = self.0.fetch_add(1, Ordering::Relaxed);
        let answering = Answering(self);
        if before < most {
            return Ok(answering);
        }
        let detail = format_args!("{before} requests are being answered already");
        Err(ApiError::new(Reason::Overloaded, detail).retry_after(Duration::from_millis(100)))
    }

    pub(crate) fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl Drop for Answering<'_> {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beyond_the_limit_requests_are_sent_away_and_not_counted() {
        let in_flight = InFlight::default();
        let first = in_flight.enter(1).unwrap();
        assert_eq!(in_flight.enter(1).unwrap_err().reason, Reason::Overloaded);
        assert_eq!(in_flight.count(), 1);
        drop(first);
        assert!(in_flight.enter(1).is_ok());
    }
}
