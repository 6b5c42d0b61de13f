//! How many Ids a key may have.

use std::num::NonZeroU32;
use std::time::Duration;

use frazil_wire::{ApiError, Reason};
use governor::clock::{Clock, DefaultClock};
use governor::middleware::StateInformationMiddleware;
use governor::state::{InMemoryState, NotKeyed};
use governor::{Quota as Rate, RateLimiter};

/// So many Ids in a second, and as many at once.
#[derive(Debug)]
pub(crate) struct Quota {
    per_second: NonZeroU32,
    limiter: RateLimiter<NotKeyed, InMemoryState, DefaultClock, StateInformationMiddleware>,
    clock: DefaultClock,
}

/// What is left of a quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Left {
    pub(crate) per_second: u32,
    pub(crate) remaining: u32,
}

impl Quota {
    pub(crate) fn new(per_second: NonZeroU32) -> Self {
        let limiter = RateLimiter::direct(Rate::per_second(per_second)).with_middleware();
        Self { per_second, limiter, clock: DefaultClock::default() }
    }

    pub(crate) const fn per_second(&self) -> NonZeroU32 {
        self.per_second
    }

    /// Takes so many Ids from it.
    ///
    /// # Errors
    /// If there are not so many, and after how long there are.
    pub(crate) fn take(&self, count: u32) -> Result<Left, ApiError> {
        let per_second = self.per_second.get();
        let Some(wanted) = NonZeroU32::new(count) else {
            return Ok(Left { per_second, remaining: per_second });
        };
        match self.limiter.check_n(wanted) {
            Ok(Ok(state)) => Ok(Left { per_second, remaining: state.remaining_burst_capacity() }),
            Ok(Err(not_until)) => {
                let wait = not_until.wait_time_from(self.clock.now());
                let detail = format_args!("the key may have {per_second} Ids a second");
                let wait = wait.max(Duration::from_millis(1));
                Err(ApiError::new(Reason::QuotaExceeded, detail).retry_after(wait))
            }
            Err(_) => Err(ApiError::new(
                Reason::QuotaExceeded,
                format_args!(
                    "{count} Ids are more than the key may ever have at once: ask for at most \
                     {per_second}"
                ),
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quota_gives_a_second_at_once_and_says_when_there_is_more() {
        let quota = Quota::new(NonZeroU32::new(1000).unwrap());
        assert_eq!(quota.take(400).unwrap(), Left { per_second: 1000, remaining: 600 });
        // Some come back while this runs, so what is left may be a little more.
        let left = quota.take(600).unwrap().remaining;
        let error = quota.take(1000).unwrap_err();
        assert_eq!(error.reason, Reason::QuotaExceeded);
        assert!(left < 1000 && error.retry_after.unwrap() <= Duration::from_secs(1), "{error:?}");
        let error = quota.take(1001).unwrap_err();
        assert_eq!((error.reason, error.retry_after), (Reason::QuotaExceeded, None));
        assert!(quota.take(0).is_ok());
    }
}
