//! The belief in real time: not at once when it jumps ahead.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use frazil_coord::internal::keeper::StoreTime;

use super::look::{Look, micros};
use super::witness::{ClockOffset, Witness};

/// Real time this far from where it should be by the time since boot has jumped: no clock is slewed
/// that fast, and nodes whose clocks are further apart do not trust each other.
pub(super) const JUMP_US: i64 = 2_000_000;
/// A jump that has lasted this long is the truth.
pub(super) const LASTED_US: i64 = 60_000_000;
/// Real time is where it should be.
const TOGETHER: i64 = i64::MIN;

/// Where real time should be, by the time since boot.
///
/// A clock that jumps an hour ahead and comes back would otherwise leave the node with IDs from the
/// future, and then with a clock that seems to have stepped back by an hour. So a jump ahead is
/// believed once it has lasted for a minute, or once the store's clock confirms it (see [`Witness`]);
/// until then time goes on from where it was.
///
/// Uniqueness never depends on this, whatever clocks say: only whether the times in IDs are true.
#[derive(Debug)]
pub(super) struct Belief {
    /// Real time minus boot time, in microseconds.
    offset_us: AtomicI64,
    /// Boot time since when real time is elsewhere, in microseconds.
    apart_since_us: AtomicI64,
    /// Real time minus boot time there.
    apart_offset_us: AtomicI64,
    /// Real time up to this is believed without a look at boot time, in microseconds.
    until_us: AtomicI64,
    witness: Mutex<Witness>,
}

/// Where real time is, seen from where it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Deviation {
    Right,
    Ahead,
    Behind,
}

impl Belief {
    /// Believes what real time is now.
    pub(super) fn new(look: Look) -> Self {
        let belief = Self {
            offset_us: AtomicI64::new(look.offset_us()),
            apart_since_us: AtomicI64::new(TOGETHER),
            apart_offset_us: AtomicI64::new(0),
            until_us: AtomicI64::new(0),
            witness: Mutex::default(),
        };
        belief.judge(look);
        belief
    }

    /// Whether this is surely no jump ahead.
    #[inline]
    pub(super) fn covers(&self, real: Duration) -> bool {
        // Relaxed, here and below: each word stands for itself. Threads that look at the same time
        // may overwrite each other's view with one that is as recent.
        micros(real) <= self.until_us.load(Ordering::Relaxed)
    }

    /// The time to go by.
    pub(super) fn judge(&self, look: Look) -> Duration {
        let place = self.place(look);
        // A wide look does not say where real time is, so nothing is believed by it.
        let is_right = place == Deviation::Right || look.is_narrow() && self.has_lasted(look);
        let by_us = if is_right {
            self.believe(look);
            look.real_us
        } else {
            let by_us = if place == Deviation::Ahead { self.line_us(look) } else { look.real_us };
            // No further: the end of the jump must be seen too, or two short ones seem one long.
            self.until_us.store(by_us, Ordering::Relaxed);
            by_us
        };
        Duration::from_micros(by_us.max(0).cast_unsigned())
    }

    /// Takes in what the store's clock showed: a jump ahead that it confirms is believed at once.
    pub(super) fn hear(&self, store: StoreTime, look: Look) {
        self.judge(look);
        let (place, heard) = (self.place(look), ClockOffset::new(store));
        let is_good = {
            let mut witness = self.witness.lock().unwrap_or_else(PoisonError::into_inner);
            witness.hear(heard, look.before_us, place == Deviation::Right)
        };
        let confirms = is_good && look.is_narrow() && heard.is_near(look.offset_us());
        if place == Deviation::Ahead && confirms {
            self.believe(look);
        }
    }

    fn place(&self, look: Look) -> Deviation {
        let offset_us = self.offset_us.load(Ordering::Relaxed);
        // A thread that was held up between its looks must not see a jump.
        if look.real_us > offset_us + look.after_us + JUMP_US {
            Deviation::Ahead
        } else if look.real_us < offset_us + look.before_us - JUMP_US {
            Deviation::Behind
        } else {
            Deviation::Right
        }
    }

    /// Where real time should be.
    fn line_us(&self, look: Look) -> i64 {
        self.offset_us.load(Ordering::Relaxed) + look.after_us
    }

    /// Real time is where it should be from now on.
    fn believe(&self, look: Look) {
        self.apart_since_us.store(TOGETHER, Ordering::Relaxed);
        if look.is_narrow() {
            self.offset_us.store(look.offset_us(), Ordering::Relaxed);
        }
        self.until_us.store(look.real_us + JUMP_US, Ordering::Relaxed);
    }

    /// Whether real time has been in that other place for long; notes when that began.
    fn has_lasted(&self, look: Look) -> bool {
        let (boot_us, offset_us) = (look.before_us, look.offset_us());
        let began = self.apart_since_us.load(Ordering::Relaxed);
        let moved = offset_us - self.apart_offset_us.load(Ordering::Relaxed);
        if began == TOGETHER || moved.abs() > JUMP_US {
            self.apart_since_us.store(boot_us, Ordering::Relaxed);
            self.apart_offset_us.store(offset_us, Ordering::Relaxed);
            return false;
        }
        boot_us - began >= LASTED_US
    }
}

#[cfg(test)]
mod tests;
