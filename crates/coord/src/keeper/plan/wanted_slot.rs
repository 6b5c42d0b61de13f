//! The time to claim a slot that is wanted by its name: from what was seen of it, and what time it is.

use std::time::Duration;

use crate::record::{Token, Version};
use crate::store::{Entry, Found, Presence};

/// What a candidate remembers of the slot that it wants. All times are boot times.
#[derive(Clone, Debug)]
pub(super) struct WantedSlot {
    lock_delay: Duration,
    ttl: Duration,
    /// Whether the slot was ever there: one that is gone afterwards was forgotten, and whoever held
    /// it may not know yet.
    was_there: bool,
    /// How the slot was last seen free, if it was not held since.
    free: Option<Free>,
    /// When the last look was asked for, and when it was answered.
    asked: Duration,
    seen: Duration,
    /// How long to leave a free slot to others; `None`: for good.
    pace: Option<Duration>,
    /// Looks that were asked for before this say nothing: the slot was claimed in vain since.
    stale_before: Duration,
}

/// A slot that was seen free.
#[derive(Clone, Copy, Debug)]
struct Free {
    version: Version,
    /// Of the last one who held it.
    token: Option<Token>,
    /// Since when.
    since: Duration,
    /// What is waited for from then on.
    delay: Duration,
}

/// What to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    /// Nothing: claim this version.
    No(Version),
    /// So long, unless something changes.
    For(Duration),
    /// Until something changes.
    ForAChange,
    /// Until the store was looked at again.
    ForALook,
}

impl WantedSlot {
    pub(super) const fn new(lock_delay: Duration, ttl: Duration) -> Self {
        let (asked, seen, stale_before) = (Duration::ZERO, Duration::ZERO, Duration::ZERO);
        let (was_there, free, pace) = (false, None, None);
        Self { lock_delay, ttl, was_there, free, asked, seen, pace, stale_before }
    }

    /// The slot was claimed in vain: what was seen before is out of date.
    pub(super) const fn look_again(&mut self, now: Duration) {
        self.stale_before = now;
    }

    /// The slot was seen, or (`None`) does not exist.
    pub(super) fn saw(
        &mut self,
        entry: Option<&Entry>,
        (asked, seen): (Duration, Duration),
        pace: Option<Duration>,
    ) {
        (self.asked, self.seen, self.pace) = (asked, seen, pace);
        if asked <= self.stale_before {
            return;
        }
        let (version, token, delay) = match entry {
            None if self.was_there => (Version(0), None, self.after_amnesia()),
            None => (Version(0), None, Duration::ZERO),
            Some(entry) if entry.presence != Presence::Free => {
                (self.was_there, self.free) = (true, None);
                return;
            }
            Some(entry) => match &entry.found {
                Found::New => (entry.version, None, Duration::ZERO),
                Found::Known(record) => {
                    // Whoever releases erases its mark.
                    let is_released = record.nonce.is_none();
                    let delay = if is_released { Duration::ZERO } else { self.lock_delay };
                    (entry.version, Some(record.token), delay)
                }
                Found::Lost => (entry.version, None, self.after_amnesia()),
            },
        };
        self.seen_free(Free { version, token, since: seen, delay });
    }

    /// What is waited for now. Without a change the store is looked at again after `retry`.
    pub(super) fn wait(&self, now: Duration, retry: Duration) -> Wait {
        if self.asked <= self.stale_before {
            return Wait::ForALook;
        }
        let (Some(free), Some(pace)) = (self.free, self.pace) else {
            return if self.is_old(now, retry) { Wait::ForALook } else { Wait::ForAChange };
        };
        match (free.since + free.delay.max(pace)).checked_sub(now) {
            Some(pause) if !pause.is_zero() => Wait::For(pause),
            _ => Wait::No(free.version),
        }
    }

    /// Whether the last look was so long ago that a change may have been missed.
    pub(super) const fn is_old(&self, now: Duration, retry: Duration) -> bool {
        now.saturating_sub(self.seen).as_nanos() >= retry.as_nanos()
    }

    /// Remembers since when the slot is free, and what is waited for. A leader that releases after it
    /// was seen to be gone shortens nothing: it may have been frozen, and its work with it.
    fn seen_free(&mut self, seen: Free) {
        let free = match self.free {
            Some(known) if known.version == seen.version => known,
            Some(known)
                if seen.token.is_some()
                    && known.token == seen.token
                    && known.delay > seen.delay =>
            {
                Free { version: seen.version, ..known }
            }
            _ => seen,
        };
        self.free = Some(free);
    }

    /// How long a leader that the store has forgotten may go on believing that it leads. Work that
    /// checks tokens need not wait for that.
    fn after_amnesia(&self) -> Duration {
        if self.lock_delay.is_zero() { Duration::ZERO } else { self.ttl + self.lock_delay }
    }
}

#[cfg(test)]
mod tests;
