//! The offset of our clock by the renewals of others, where the store has no clock of its own.

use std::collections::HashMap;
use std::time::Duration;

use super::{Now, millis};
use crate::keeper::status::{ClockSkew, Judge};
use crate::record::UnixMs;
use crate::rules::CLOCK_BOUND_MS;
use crate::slot::Slot;
use crate::store::{Entry, Found, Presence};

/// How many live peers it takes: among fewer, one with a wrong clock decides.
const PEERS_MIN: usize = 3;

/// The last renewals of others, and when they were written.
///
/// A renewal that one look at the pool shows and the look before it did not was written in between,
/// so the clock that stamped it is known from both sides, whatever the heartbeats of others are and
/// however long they were stopped. A stamp is older than its write by the time that a request takes,
/// which is less than [`CLOCK_BOUND_MS`].
#[derive(Clone, Debug, Default)]
pub(super) struct Peers {
    renewals: HashMap<Slot, Renewal>,
    /// When the last look was asked for, in boot time.
    looked: Option<Duration>,
    /// Whether a look was ever asked for.
    has_looked: bool,
}

/// The last renewal of a peer.
#[derive(Clone, Copy, Debug)]
struct Renewal {
    /// By the peer's clock.
    renewed: UnixMs,
    /// Written after this, in boot time, if that is known.
    after: Option<Duration>,
    /// Written before this, in boot time.
    before: Duration,
}

impl Peers {
    /// Whether a look at the pool was answered or failed so far.
    pub(super) const fn has_looked(&self) -> bool {
        self.has_looked
    }

    /// A look at the pool failed.
    pub(super) const fn saw_nothing(&mut self) {
        self.has_looked = true;
    }

    /// Takes in a look at the pool that was asked for at a boot time. `holder`: our own name, since
    /// other lanes of this process are no peers. `window`: whoever is present renewed within it.
    pub(super) fn saw(
        &mut self,
        entries: &[Entry],
        holder: &str,
        window: Duration,
        asked: Duration,
        now: Now,
    ) {
        self.has_looked = true;
        let at_first = asked.checked_sub(window);
        let known = std::mem::take(&mut self.renewals);
        for entry in entries {
            let Found::Known(record) = &entry.found else { continue };
            if entry.presence == Presence::Free || record.holder == holder {
                continue;
            }
            let renewal = match known.get(&entry.slot) {
                Some(last) if last.renewed == record.renewed => *last,
                _ => Renewal {
                    renewed: record.renewed,
                    after: self.looked.or(at_first),
                    before: now.boot,
                },
            };
            self.renewals.insert(entry.slot.clone(), renewal);
        }
        self.looked = Some(asked);
    }

    /// Whether our clock agrees with the median of live peers, as far as that can be told.
    ///
    /// # Errors
    /// How far it is ahead at least, if that is out of bounds.
    pub(super) fn agree(&self, now: Now) -> Result<(), ClockSkew> {
        let mut skews: Vec<i64> = self.renewals.values().map(|renewal| renewal.skew(now)).collect();
        if skews.len() < PEERS_MIN {
            return Ok(());
        }
        skews.sort_unstable();
        let (low, high) = (skews[(skews.len() - 1) / 2], skews[skews.len() / 2]);
        let ahead_ms = if low.unsigned_abs() < high.unsigned_abs() { low } else { high };
        match ahead_ms.unsigned_abs() > CLOCK_BOUND_MS {
            true => Err(ClockSkew { ahead_ms, judge: Judge::Peers }),
            false => Ok(()),
        }
    }
}

impl Renewal {
    /// How far our clock is ahead of the peer's at least, in milliseconds; 0 if it may agree.
    fn skew(&self, now: Now) -> i64 {
        // What our clock, as it goes now, would have shown then.
        let at = |boot: Duration| now.unix.saturating_sub(millis(now.boot.saturating_sub(boot)));
        let ahead = self.after.map_or(0, |after| at(after).saturating_sub(self.renewed));
        let behind = self.renewed.saturating_sub(at(self.before));
        ahead.cast_signed() - behind.cast_signed()
    }
}
