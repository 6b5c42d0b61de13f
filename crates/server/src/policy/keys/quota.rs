//! The quota of a key.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use frazil::coord::internal::time::boot_time;
use frazil_wire::{ApiError, Reason};

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

/// The quota of a name, which all its keys take from: so many IDs in a second, and as many at once.
#[derive(Debug)]
pub(crate) struct Quota {
    allowance: Allowance,
    per_second: AtomicU32,
    debt: Debt,
}

/// What was taken and has not come back yet, as the moment by which it has. That is a second from now at
/// the most, however many IDs a second is worth: a quota of another size is as full as it was.
#[derive(Debug, Default)]
struct Debt {
    /// Of boot time, in [`UNITS`] of a second.
    is_paid_at: AtomicU64,
}

/// Sixteenths of a nanosecond: the largest quota gives an ID in less than one nanosecond.
const UNITS: u64 = 16_000_000_000;

impl Debt {
    /// Takes as much as comes back in `cost`, of a second's worth; gives all that is owed then.
    ///
    /// # Errors
    /// After how long there is so much.
    fn take(&self, cost: u64, now: Duration) -> Result<u64, Duration> {
        let now = units(now);
        let mut is_paid_at = self.is_paid_at.load(Ordering::Relaxed);
        loop {
            let owed = is_paid_at.saturating_sub(now) + cost;
            if owed > UNITS {
                return Err(Duration::from_nanos((owed - UNITS).div_ceil(16)));
            }
            // Relaxed, here and above: one number that stands for itself.
            let taken = self.is_paid_at.compare_exchange_weak(
                is_paid_at,
                now + owed,
                Ordering::Relaxed,
                Ordering::Relaxed,
            );
            match taken {
                Ok(_) => return Ok(owed),
                Err(other) => is_paid_at = other,
            }
        }
    }
}

/// Holds for a boot time of 36 years.
fn units(time: Duration) -> u64 {
    u64::try_from(time.as_nanos() * 16).unwrap_or(u64::MAX - 2 * UNITS)
}

/// What is left of a quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QuotaLeft {
    pub(crate) per_second: u32,
    pub(crate) remaining: u32,
}

impl Quota {
    pub(crate) fn new(allowance: Allowance, nodes: LiveNodes) -> Self {
        let per_second = AtomicU32::new(allowance.share(nodes).get());
        Self { allowance, per_second, debt: Debt::default() }
    }

    pub(crate) const fn allowance(&self) -> Allowance {
        self.allowance
    }

    /// How many there are in a second, of this node.
    pub(crate) fn per_second(&self) -> u32 {
        // Relaxed: requests that race with a change may see either.
        self.per_second.load(Ordering::Relaxed)
    }

    /// Divides what is for all nodes by another number of them.
    pub(crate) fn divide(&self, nodes: LiveNodes) {
        // Relaxed: see `per_second`.
        self.per_second.store(self.allowance.share(nodes).get(), Ordering::Relaxed);
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
        let mut wanted = most.min(self.per_second() / SHARES).max(1);
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
    /// If there are not so many, and after how long there are; or that there never are so many at once.
    pub(crate) fn take(&self, count: u32) -> Result<QuotaLeft, ApiError> {
        self.take_at(count, boot_time())
    }

    fn take_at(&self, count: u32, now: Duration) -> Result<QuotaLeft, ApiError> {
        let per_second = self.per_second();
        if count > per_second {
            let detail = format_args!(
                "{count} IDs are more than the key may ever have at once: ask for at most \
                 {per_second}"
            );
            // No wait helps: the request itself is wrong.
            return Err(ApiError::new(Reason::CountOutOfRange, detail));
        }
        // At most a second: `count` is no more than there are in one.
        let cost = (u128::from(count) * u128::from(UNITS)).div_ceil(u128::from(per_second));
        let cost = u64::try_from(cost).unwrap_or(UNITS);
        let owed = self.debt.take(cost, now).map_err(|wait| {
            let detail = format_args!("the key may have {per_second} IDs a second of this node");
            let wait = wait.max(Duration::from_millis(1));
            ApiError::new(Reason::QuotaExceeded, detail).retry_after(wait)
        })?;
        let remaining = u128::from(UNITS - owed) * u128::from(per_second) / u128::from(UNITS);
        Ok(QuotaLeft { per_second, remaining: u32::try_from(remaining).unwrap_or(per_second) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG_AGO: Duration = Duration::from_secs(1_000_000);

    fn rate(number: u32) -> NonZeroU32 {
        NonZeroU32::new(number).unwrap()
    }

    fn after(ms: u64) -> Duration {
        LONG_AGO + Duration::from_millis(ms)
    }

    /// Until when so many are refused; `None` for what will never be there.
    fn wait(quota: &Quota, count: u32, now: Duration) -> Option<Duration> {
        let error = quota.take_at(count, now).unwrap_err();
        let reason = error.retry_after.map_or(Reason::CountOutOfRange, |_| Reason::QuotaExceeded);
        assert_eq!(error.reason, reason);
        error.retry_after
    }

    #[test]
    fn a_quota_gives_a_second_at_once_and_says_when_there_is_more() {
        let quota = Quota::new(Allowance::Node(rate(1000)), NonZeroU32::MIN);
        let left = |remaining| QuotaLeft { per_second: 1000, remaining };
        assert_eq!(quota.take_at(0, after(0)).unwrap(), left(1000));
        assert_eq!(quota.take_at(400, after(0)).unwrap(), left(600));
        assert_eq!(wait(&quota, 601, after(0)), Some(Duration::from_millis(1)));
        assert_eq!(wait(&quota, 1000, after(100)), Some(Duration::from_millis(300)));
        assert_eq!(quota.take_at(700, after(100)).unwrap(), left(0));
        assert_eq!(wait(&quota, 1001, after(100)), None, "never");
        // What was refused cost nothing, and nobody saves up more than a second's worth.
        assert_eq!(quota.take_at(1000, after(1100)).unwrap(), left(0));
        assert_eq!(quota.take_at(1000, after(9_000_000)).unwrap(), left(0));
        assert_eq!(wait(&quota, 1, after(9_000_000)), Some(Duration::from_millis(1)));
    }

    #[test]
    fn a_quota_of_the_cluster_is_divided_by_its_nodes_and_stays_as_full_as_it_was() {
        let quota = Quota::new(Allowance::Cluster(rate(9000)), rate(3));
        assert_eq!(quota.take_at(1500, after(0)).unwrap().remaining, 1500);
        quota.divide(rate(2));
        let left = quota.take_at(0, after(0)).unwrap();
        assert_eq!(left, QuotaLeft { per_second: 4500, remaining: 2250 }, "half full");
        quota.divide(rate(u32::MAX));
        assert_eq!(quota.per_second(), 1, "nobody is left with nothing");
        let own = Quota::new(Allowance::Node(rate(10)), rate(3));
        own.divide(rate(5));
        assert_eq!(own.per_second(), 10);
    }

    #[test]
    fn the_smallest_and_the_largest_quota_give_what_they_say() {
        for (per_second, at_once) in [(1, 1), (7, 7), (u32::MAX, u32::MAX)] {
            let quota = Quota::new(Allowance::Node(rate(per_second)), NonZeroU32::MIN);
            quota.take_at(at_once, after(0)).unwrap();
            assert!(quota.take_at(1, after(0)).is_err(), "{per_second}");
            assert!(quota.take_at(1, after(1000)).is_ok(), "{per_second}");
        }
    }

    #[test]
    fn threads_share_a_quota() {
        let quota = Quota::new(Allowance::Node(rate(1000)), NonZeroU32::MIN);
        let takes = || (0..1000).filter(|_| quota.take_at(1, after(0)).is_ok()).count();
        let taken: usize = std::thread::scope(|scope| {
            let threads = [(); 4].map(|()| scope.spawn(takes));
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!(taken, 1000);
    }
}
