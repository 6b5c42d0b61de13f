//! The number of IDs to fetch ahead: as many as were used lately in the time that a buffer shall last.

/// The bounds of what is fetched at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bounds {
    pub(crate) least: u32,
    pub(crate) first: u32,
    pub(crate) most: u32,
}

/// IDs used between two fetches, and what follows from that.
#[derive(Debug)]
pub(crate) struct Sizing {
    bounds: Bounds,
    /// How long a buffer shall last.
    target_ns: u64,
    size: u32,
    before: Option<Sample>,
}

/// How many IDs had been used at a time.
#[derive(Clone, Copy, Debug)]
struct Sample {
    at_ns: u64,
    used: u64,
}

/// A size grows at most by this much at once: a burst is not yet a rate.
const GROWTH_MAX: u64 = 8;

impl Sizing {
    /// A buffer shall last for a quarter of a second, and for no more than a quarter of the age
    /// at which its IDs are dropped.
    pub(crate) fn new(bounds: Bounds, max_age_ns: u64) -> Self {
        let target_ns = (max_age_ns / 4).clamp(1, 250_000_000);
        Self { bounds, target_ns, size: bounds.first.min(bounds.most), before: None }
    }

    /// How many to fetch now that so many were used since the beginning.
    pub(crate) fn next(&mut self, now_ns: u64, used: u64, limit: u32) -> u32 {
        if let Some(before) = self.before {
            let elapsed = u128::from(now_ns.saturating_sub(before.at_ns).max(1));
            let used = u128::from(used.saturating_sub(before.used));
            let wanted = used.saturating_mul(u128::from(self.target_ns)) / elapsed;
            let wanted = u64::try_from(wanted).unwrap_or(u64::MAX);
            let size = u64::from(self.size);
            // Down by half at a time, for a pause is not yet the end.
            let within = wanted.clamp(size / 2, size.saturating_mul(GROWTH_MAX));
            let most = self.bounds.most.min(limit).max(1);
            let least = self.bounds.least.min(most);
            self.size = u32::try_from(within).unwrap_or(u32::MAX).clamp(least, most);
        }
        self.before = Some(Sample { at_ns: now_ns, used });
        self.size.min(limit.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: Bounds = Bounds { least: 16, first: 1000, most: 100_000 };
    const MS: u64 = 1_000_000;

    #[test]
    fn a_thirsty_caller_is_at_the_maximum_within_three_fetches() {
        let mut sizing = Sizing::new(BOUNDS, 2_000 * MS);
        let (mut now, mut used) = (0, 0);
        let sizes: Vec<u32> = (0..5)
            .map(|_| {
                let size = sizing.next(now, used, 100_000);
                // Everything is used up as fast as it comes: a fetch takes a millisecond.
                (now, used) = (now + MS, used + u64::from(size));
                size
            })
            .collect();
        assert_eq!(sizes, [1000, 8000, 64_000, 100_000, 100_000]);
    }

    #[test]
    fn a_slow_caller_is_given_little_and_limits_hold() {
        let mut sizing = Sizing::new(BOUNDS, 2_000 * MS);
        let (mut now, mut used, mut size) = (0, 0, 0);
        for _ in 0..20 {
            size = sizing.next(now, used, 100_000);
            // Ten a second.
            (now, used) = (now + 1_000 * MS, used + 10);
        }
        assert_eq!(size, 16);
        assert_eq!(sizing.next(now, used + 100_000_000, 50), 50, "the server's limit");
        assert_eq!(sizing.next(now + 1, used + 200_000_000, 7), 7, "below the least, too");
    }
}
