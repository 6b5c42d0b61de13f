//! The bound on a clock that may have jumped when a horizon is asked for.

use std::time::Duration;

use crate::record::UnixMs;

/// How long a forward step must last to be believed without anybody confirming it: a host that
/// booted an hour slow would otherwise never issue again once its clock is set. Lanes believe it after
/// a minute, and by then the horizon must have been raised: it is noticed some seconds late, and the
/// store takes some seconds to answer.
const BELIEVED_AFTER: Duration = Duration::from_secs(40);
/// Clocks may run this much faster than elapsed time, in parts per thousand.
const RATE_PER_MILLE: u64 = 1;
/// What is ahead of the line by less than this is no step.
const STEP_MS: u64 = 1000;

/// A line through real time that forward steps do not move, until they are believed.
///
/// A horizon is asked for no further than the line allows, so that a clock that jumped ahead for a
/// moment does not block a slot for as long as it jumped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StepFilter {
    unix: UnixMs,
    boot: Duration,
    /// Since when the clock is ahead of the line.
    ahead_since: Option<Duration>,
}

impl StepFilter {
    /// A line through now.
    pub(crate) const fn new(unix: UnixMs, boot: Duration) -> Self {
        Self { unix, boot, ahead_since: None }
    }

    /// The time that a horizon may be counted from: now, unless the clock stepped ahead.
    /// `ages`: a step that lasts is believed although nobody confirms it.
    pub(crate) fn believe(&mut self, unix: UnixMs, boot: Duration, ages: bool) -> UnixMs {
        let line = self.line(boot);
        if unix <= line.saturating_add(STEP_MS) {
            // Anew from here, so that what clocks may run fast by does not add up.
            *self = Self::new(unix, boot);
            return unix;
        }
        let since = *self.ahead_since.get_or_insert(boot);
        if ages && boot.saturating_sub(since) >= BELIEVED_AFTER {
            *self = Self::new(unix, boot);
            return unix;
        }
        line
    }

    /// Looks at the clock between two horizons; whether it stepped ahead long enough ago to be believed.
    pub(crate) fn notice(&mut self, unix: UnixMs, boot: Duration) -> bool {
        if unix <= self.line(boot).saturating_add(STEP_MS) {
            self.ahead_since = None;
            return false;
        }
        let since = *self.ahead_since.get_or_insert(boot);
        boot.saturating_sub(since) >= BELIEVED_AFTER
    }

    /// The store's clock says the same as ours: a step that may have been is believed. Whether there
    /// was one.
    pub(crate) fn confirm(&mut self, unix: UnixMs, boot: Duration) -> bool {
        let was_step = unix > self.line(boot).saturating_add(STEP_MS);
        *self = Self::new(unix, boot);
        was_step
    }

    fn line(&self, boot: Duration) -> UnixMs {
        let elapsed = boot.saturating_sub(self.boot).as_millis();
        let elapsed = u64::try_from(elapsed).unwrap_or(u64::MAX);
        let fast = elapsed.saturating_add(elapsed / 1000 * RATE_PER_MILLE);
        self.unix.saturating_add(fast)
    }
}

#[cfg(test)]
mod tests;
