//! The quota of a key.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use frazil_wire::{ApiError, Reason};
use governor::clock::{Clock, DefaultClock};
use governor::middleware::StateInformationMiddleware;
use governor::state::{InMemoryState, NotKeyed};
use governor::{Quota as Rate, RateLimiter};

use crate::policy::queue::Count;

/// Whoever takes what there is takes this part of a second's worth at the most.
const SHARES: u32 = 10;

/// The nodes that a quota of all nodes is divided by.
pub(crate) type LiveNodes = NonZeroU32;

/// How many IDs somebody may have in a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Allowance {
    /// Of each node.
    Node(NonZeroU32),
    /// Of all nodes together.
    Cluster(NonZeroU32),
}

impl Allowance {
    /// What one of so many nodes gives; never nothing.
    fn share(self, nodes: LiveNodes) -> NonZeroU32 {
        match self {
            Self::Node(rate) => rate,
            Self::Cluster(rate) => NonZeroU32::new(rate.get() / nodes).unwrap_or(NonZeroU32::MIN),
        }
    }
}

/// The quota of a name: all its keys take from it.
#[derive(Debug)]
pub(crate) struct Quota {
    allowance: Allowance,
    bucket: ArcSwap<Bucket>,
    clock: DefaultClock,
}

/// So many IDs in a second, and as many at once.
#[derive(Debug)]
struct Bucket {
    per_second: NonZeroU32,
    limiter: RateLimiter<NotKeyed, InMemoryState, DefaultClock, StateInformationMiddleware>,
}

impl Bucket {
    fn full(per_second: NonZeroU32) -> Self {
        let limiter = RateLimiter::direct(Rate::per_second(per_second)).with_middleware();
        Self { per_second, limiter }
    }

    /// One of another size that is as full as this one: nodes that come and go give nobody a
    /// second's worth anew.
    fn resized(&self, per_second: NonZeroU32) -> Self {
        // To look means to take one.
        let left = match self.limiter.check_n(NonZeroU32::MIN) {
            Ok(Ok(state)) => u64::from(state.remaining_burst_capacity()) + 1,
            _ => 0,
        };
        let kept = left * u64::from(per_second.get()) / u64::from(self.per_second.get());
        let gone = u64::from(per_second.get()).saturating_sub(kept);
        let new = Self::full(per_second);
        if let Some(gone) = u32::try_from(gone).ok().and_then(NonZeroU32::new) {
            // A full bucket has as many.
            let _ = new.limiter.check_n(gone);
        }
        new
    }
}

/// What is left of a quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QuotaLeft {
    pub(crate) per_second: u32,
    pub(crate) remaining: u32,
}

impl Quota {
    pub(crate) fn new(allowance: Allowance, nodes: LiveNodes) -> Self {
        let bucket = ArcSwap::from_pointee(Bucket::full(allowance.share(nodes)));
        Self { allowance, bucket, clock: DefaultClock::default() }
    }

    pub(crate) const fn allowance(&self) -> Allowance {
        self.allowance
    }

    /// How many there are in a second, of this node.
    pub(crate) fn per_second(&self) -> NonZeroU32 {
        self.bucket.load().per_second
    }

    /// Divides what is for all nodes by another number of them.
    pub(crate) fn divide(&self, nodes: LiveNodes) {
        let (bucket, share) = (self.bucket.load(), self.allowance.share(nodes));
        if bucket.per_second != share {
            self.bucket.store(Arc::new(bucket.resized(share)));
        }
    }

    /// Takes what a request wants, or what there is of it where less will do; gives how many.
    ///
    /// # Errors
    /// If there are not so many, and after how long there are.
    pub(crate) fn charge(&self, count: Count) -> Result<(u32, QuotaLeft), ApiError> {
        let Count::UpTo(most) = count else {
            return self.take(count.most()).map(|left| (count.most(), left));
        };
        // A tenth of a second's worth at the most, so that other requests with the key have their share; and half as
        // many until there are so many.
        let mut wanted = most.min(self.per_second().get() / SHARES).max(1);
        loop {
            match self.take(wanted) {
                Ok(left) => return Ok((wanted, left)),
                Err(error) if wanted == 1 => return Err(error),
                Err(_) => wanted /= 2,
            }
        }
    }

    /// Takes so many IDs from it.
    ///
    /// # Errors
    /// If there are not so many, and after how long there are.
    pub(crate) fn take(&self, count: u32) -> Result<QuotaLeft, ApiError> {
        let bucket = self.bucket.load();
        let per_second = bucket.per_second.get();
        let Some(wanted) = NonZeroU32::new(count) else {
            return Ok(QuotaLeft { per_second, remaining: per_second });
        };
        match bucket.limiter.check_n(wanted) {
            Ok(Ok(state)) => {
                Ok(QuotaLeft { per_second, remaining: state.remaining_burst_capacity() })
            }
            Ok(Err(not_until)) => {
                let wait = not_until.wait_time_from(self.clock.now());
                let detail =
                    format_args!("the key may have {per_second} IDs a second of this node");
                let wait = wait.max(Duration::from_millis(1));
                Err(ApiError::new(Reason::QuotaExceeded, detail).retry_after(wait))
            }
            Err(_) => Err(ApiError::new(
                Reason::QuotaExceeded,
                format_args!(
                    "{count} IDs are more than the key may ever have at once: ask for at most \
                     {per_second}"
                ),
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(number: u32) -> NonZeroU32 {
        NonZeroU32::new(number).unwrap()
    }

    #[test]
    fn a_quota_of_the_cluster_is_divided_by_its_nodes_and_stays_as_full_as_it_was() {
        let quota = Quota::new(Allowance::Cluster(rate(9000)), rate(3));
        assert_eq!(quota.per_second(), rate(3000));
        quota.take(3000).unwrap();
        quota.divide(rate(2));
        assert_eq!(quota.per_second(), rate(4500));
        let error = quota.take(4500).unwrap_err();
        assert!(error.retry_after.unwrap() > Duration::from_millis(500), "{error:?}");
        // Half full stays half full.
        let quota = Quota::new(Allowance::Cluster(rate(1_000_000)), NonZeroU32::MIN);
        quota.take(500_000).unwrap();
        quota.divide(rate(10));
        let left = quota.take(1).unwrap();
        assert!(left.per_second == 100_000 && left.remaining < 100_000, "{left:?}");
        assert!(left.remaining >= 49_000, "{left:?}");
        quota.divide(rate(u32::MAX));
        assert_eq!(quota.per_second(), NonZeroU32::MIN, "nobody is left with nothing");
        let own = Quota::new(Allowance::Node(rate(10)), rate(3));
        own.divide(rate(5));
        assert_eq!(own.per_second(), rate(10));
    }

    #[test]
    fn a_quota_gives_a_second_at_once_and_says_when_there_is_more() {
        let quota = Quota::new(Allowance::Node(rate(1000)), NonZeroU32::MIN);
        assert_eq!(quota.take(400).unwrap(), QuotaLeft { per_second: 1000, remaining: 600 });
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
