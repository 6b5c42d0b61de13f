//! Every rule of issuing, in one pure function.
//!
//! A *ticket* is `tick << sequence_bits | sequence`: the next ticket is the next chance to stamp
//! an ID. Sequence overflow carries into the next tick by itself, and a ticket never goes down.
//!
//! | rule | if broken |
//! |---|---|
//! | the first ticket is the first of `now`, or the one after the last, whichever is later | (an ID would repeat or sort wrongly) |
//! | floor < tick | the ticket is raised above the floor |
//! | tick <= horizon | [`NotReady::Horizon`] |
//! | tick <= max(now, floor + 1) + max_ahead | [`NotReady::SequenceExhausted`], or a part of the grant |
//! | tick <= the layout's last tick | [`NotReady::TimeExhausted`] |
//! | now >= epoch | [`NotReady::BeforeEpoch`] |
//! | real time did not step back | by policy: [`NotReady::ClockBehind`], [`NotReady::ClockRefused`], or ride on the steady line until real time allows the next ticket |
//! | a grant fits into the ticks that may be open at once | [`NotReady::BatchTooLarge`] |
//!
//! All limits are tested on the last ticket of what is granted.

use core::time::Duration;

use crate::clock::{Moment, Reading};
use crate::not_ready::NotReady;
use crate::options::Rollback;

/// What stays the same for the life of a generator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Bits of a ticket below the tick.
    pub sequence_bits: u32,
    /// The layout's last tick.
    pub last_tick: u64,
    /// The length of a tick.
    pub tick: Duration,
    /// How many ticks IDs may run ahead of the clock.
    pub max_ahead: u64,
    /// What to do when real time stepped back.
    pub rollback: Rollback,
    /// Steps back shorter than this are waited out under [`Rollback::Refuse`].
    pub rollback_tolerance: Duration,
    /// A tick is opened at a sequence below this; 0 and 1 both mean at 0.
    pub spread: u64,
    /// Makes workers spread differently.
    pub salt: u64,
}

/// The ticks a holder may stamp: above the floor, up to the horizon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The horizon of all holders before.
    pub floor: u64,
    /// The last tick that the store has acknowledged.
    pub horizon: u64,
}

/// How many tickets are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask {
    least: u64,
    most: u64,
}

impl Ask {
    /// All of `n`, or none; 0 counts as 1.
    #[must_use]
    pub const fn exactly(n: u64) -> Self {
        let n = if n == 0 { 1 } else { n };
        Self { least: n, most: n }
    }

    /// Any number from 1 to `n`, the more the better; 0 counts as 1.
    #[must_use]
    pub const fn up_to(n: u64) -> Self {
        Self { least: 1, most: if n == 0 { 1 } else { n } }
    }
}

/// The tickets `first..first + count`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Granted {
    /// The first ticket.
    pub first: u64,
    /// How many.
    pub count: u64,
}

impl Granted {
    /// The last ticket.
    #[must_use]
    pub const fn last(&self) -> u64 {
        self.first + self.count - 1
    }
}

/// Decides which tickets follow `last` at this reading of the clock.
///
/// # Errors
/// The reason why none can be granted now.
pub fn step(
    rules: &Rules,
    bounds: Bounds,
    last: u64,
    reading: Reading,
    ask: Ask,
) -> Result<Granted, NotReady> {
    let next = last.saturating_add(1).max(rules.ticket_after(bounds.floor));
    let now = rules.now(reading, next)?;
    if ask.least > rules.grant_max() {
        return Err(NotReady::BatchTooLarge { max: rules.grant_max() });
    }
    let first = rules.first_ticket(next, now.tick);
    let needed = first.saturating_add(ask.least);
    if needed > rules.ticket_after(rules.last_tick) {
        return Err(NotReady::TimeExhausted { last_tick: rules.last_tick });
    }
    if needed > rules.ticket_after(bounds.horizon) {
        return Err(NotReady::Horizon { horizon: bounds.horizon });
    }
    let end = rules.end(bounds, now.tick);
    if needed > end {
        return Err(rules.exhausted(needed - 1, now));
    }
    Ok(Granted { first, count: ask.most.min(end - first) })
}

impl Rules {
    /// Where time is for the ticket `next`, by the rollback policy. A tick beyond the layout counts as
    /// the one after its last, so that no shift can lose bits.
    fn now(&self, reading: Reading, next: u64) -> Result<Moment, NotReady> {
        let now = match reading {
            Reading::At(now) => now,
            Reading::BeforeEpoch { by } => return Err(NotReady::BeforeEpoch { retry_after: by }),
            Reading::Stepped { real, behind, steady } => match self.rollback {
                // A rider whose tickets are ahead of real time would stall on it.
                Rollback::Ride if !behind.is_zero() || self.is_ahead(next, real.tick) => steady,
                _ if behind.is_zero() => real,
                Rollback::Refuse if behind >= self.rollback_tolerance => {
                    return Err(NotReady::ClockRefused { retry_after: behind });
                }
                _ => return Err(NotReady::ClockBehind { retry_after: behind }),
            },
        };
        Ok(Moment { tick: now.tick.min(self.last_tick.saturating_add(1)), ..now })
    }

    fn is_ahead(&self, ticket: u64, now: u64) -> bool {
        ticket >> self.sequence_bits > now.saturating_add(self.max_ahead)
    }

    /// The most tickets that can ever be granted at once.
    fn grant_max(&self) -> u64 {
        let ticks = self.max_ahead.min(self.last_tick) + 1;
        (ticks << self.sequence_bits).saturating_sub(self.spread.saturating_sub(1))
    }

    /// The next ticket, or the first of the tick `now` if that is later.
    fn first_ticket(&self, next: u64, now: u64) -> u64 {
        let opening = now << self.sequence_bits;
        if next < opening { opening + self.opening_sequence(now) } else { next }
    }

    /// The first ticket behind those that may be granted at `now`.
    fn end(&self, bounds: Bounds, now: u64) -> u64 {
        let ahead = now.max(bounds.floor.saturating_add(1)).saturating_add(self.max_ahead);
        self.ticket_after(ahead.min(bounds.horizon))
    }

    /// The first ticket of the next tick.
    pub(crate) fn ticket_after(&self, tick: u64) -> u64 {
        tick.min(self.last_tick).saturating_add(1) << self.sequence_bits
    }

    /// A pseudo-random sequence below `spread`, fixed for each tick.
    fn opening_sequence(&self, tick: u64) -> u64 {
        if self.spread <= 1 {
            return 0;
        }
        // The finalizer of SplitMix64: neighbouring ticks give unrelated values.
        let mut mixed = (tick ^ self.salt).wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % self.spread
    }

    /// Says when `ticket` will be allowed.
    fn exhausted(&self, ticket: u64, now: Moment) -> NotReady {
        let opens_at = (ticket >> self.sequence_bits).saturating_sub(self.max_ahead);
        let whole_ticks = opens_at.saturating_sub(now.tick + 1);
        let whole_ticks = u32::try_from(whole_ticks).unwrap_or(u32::MAX);
        let retry_after = now.left.saturating_add(self.tick.saturating_mul(whole_ticks));
        NotReady::SequenceExhausted { retry_after }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
