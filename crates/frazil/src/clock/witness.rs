//! Whether the store's clock can speak for a jump of ours.

use frazil_coord::internal::keeper::StoreTime;

use super::belief::{JUMP_US, LASTED_US};
use super::look::micros;

/// Times that are surely this close are the same. Half of a jump: whoever is this close to where real
/// time is after a jump is further from where it was before.
const SAME_US: i64 = JUMP_US / 2;
/// An answer that took longer says too little. Of a steady clock, two that took less are surely as close
/// as [`SAME_US`].
const VAGUE_US: i64 = SAME_US / 2;

/// What is known of the store's clock.
///
/// It confirms a jump of ours if it shows the time that ours shows now, and has done so since before the
/// jump, by the time since boot. A clock that jumped with ours, as that of a store on the same machine
/// does, is no witness; nor is one that was heard for the first time after the jump, or that was heard
/// to jump itself. Each becomes one when it has stayed for a minute where it is: no sooner than our
/// own jump would be believed without it, or that of the store would be if its clock were ours.
///
/// So for a wrong time to be believed sooner than by the minute alone both clocks must be wrong by the
/// same, and the store's must have been for a minute, or from the first time that it was heard.
#[derive(Debug, Default)]
pub(super) struct Witness(Option<Known>);

#[derive(Clone, Copy, Debug)]
struct Known {
    heard: ClockOffset,
    /// Boot time from which it can speak, if it stays where it is.
    speaks_from_us: i64,
}

/// The store's clock minus boot time is between these, in microseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClockOffset {
    low_us: i64,
    high_us: i64,
}

impl Witness {
    /// Takes in what was heard at a boot time, when real time was where it should be or not. Whether
    /// this clock can speak for a jump now.
    pub(super) fn hear(&mut self, heard: ClockOffset, boot_us: i64, is_right: bool) -> bool {
        if heard.high_us - heard.low_us > VAGUE_US {
            return false;
        }
        let speaks_from_us = match self.0 {
            Some(known) if known.heard.is_same(heard) => known.speaks_from_us,
            None if is_right => boot_us,
            _ => boot_us + LASTED_US,
        };
        self.0 = Some(Known { heard, speaks_from_us });
        boot_us >= speaks_from_us
    }
}

impl ClockOffset {
    /// The clock was read at some moment between the question and the answer, and cut to milliseconds.
    pub(super) fn new(store: StoreTime) -> Self {
        let us = |ms: u64| i64::try_from(ms).unwrap_or(i64::MAX).saturating_mul(1000);
        Self {
            low_us: us(store.unix).saturating_sub(micros(store.answered)),
            high_us: us(store.unix.saturating_add(1)).saturating_sub(micros(store.asked)),
        }
    }

    /// Whether an offset from boot time is surely the same.
    pub(super) const fn is_near(self, offset_us: i64) -> bool {
        self.is_same(Self { low_us: offset_us, high_us: offset_us })
    }

    const fn is_same(self, other: Self) -> bool {
        let low = if self.low_us < other.low_us { self.low_us } else { other.low_us };
        let high = if self.high_us > other.high_us { self.high_us } else { other.high_us };
        high.saturating_sub(low) <= SAME_US
    }
}
