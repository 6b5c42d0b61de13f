//! The lock-free issuer: a thin shell around [`step`].

#[cfg(all(test, loom))]
mod loom_tests;
#[cfg(all(test, shuttle))]
mod shuttle_tests;

use core::time::Duration;

use crate::batch::Batch;
use crate::clock::{Clock, Reading};
use crate::id::Id;
use crate::layout::Layout;
use crate::not_ready::NotReady;
use crate::options::{Options, Rollback, StartError};
use crate::step::{Ask, Bounds, Granted, Rules, step};
use crate::sync::{AtomicU64, Ordering, Padded};
use crate::ticket::Stamp;

/// The state of a closed generator, and every state above it. No ticket has the top bit, and what
/// racing threads overshoot at the end of time is far below the bit under it, so additions can
/// neither reach this nor wrap around from it.
const CLOSED: u64 = 3 << 62;

/// Issues the IDs of one worker, from any number of threads, strictly increasing and never twice.
///
/// There is one generator for each lease of a worker. [`try_next`](Self::try_next) and
/// [`try_batch`](Self::try_batch) never block; `next` and `batch` wait out what is brief.
///
/// It does not look for forks: after one, parent and child have a copy each, and both issue the same
/// IDs. Make the generator after the fork, in each process with a worker of its own, or use
/// `frazil::Node`, which refuses to issue in a child.
#[derive(Debug)]
pub struct Generator<C> {
    /// The last ticket, or [`CLOSED`].
    state: Padded<AtomicU64>,
    /// The first ticket past the horizon.
    horizon_end: AtomicU64,
    /// The tickets that may be open at once, from the first of the current tick.
    span: u64,
    floor: u64,
    rules: Rules,
    pub(crate) stamp: Stamp,
    layout: Layout,
    worker: u64,
    pub(crate) clock: C,
}

/// Ticks that one call keeps to, beside those that the generator keeps to anyway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Within {
    /// Only ticks above this.
    pub above: u64,
    /// None above this.
    pub up_to: u64,
}

/// What is known for good once a generator is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closed {
    /// No ID was or will be issued above this tick.
    pub last_tick: u64,
}

impl<C: Clock> Generator<C> {
    /// Starts a generator. The clock must count the ticks of the same layout.
    ///
    /// # Errors
    /// If the worker, the options or the clock do not fit the layout.
    pub fn new(
        layout: &Layout,
        worker: u64,
        clock: C,
        options: Options,
    ) -> Result<Self, StartError> {
        let rules = options.rules(layout, worker)?;
        let now = match clock.read() {
            Reading::At(now) => now.tick,
            Reading::Stepped { steady, .. } if options.rollback == Rollback::Ride => steady.tick,
            // The highest tick that anybody got from this clock.
            Reading::Stepped { real, behind, .. } => {
                let behind_ticks = behind.as_nanos().div_ceil(rules.tick.as_nanos());
                real.tick.saturating_add(u64::try_from(behind_ticks).unwrap_or(u64::MAX))
            }
            Reading::BeforeEpoch { by } => {
                return Err(StartError::Clock(NotReady::BeforeEpoch { retry_after: by }));
            }
        };
        let ticks_left = layout.last_tick().saturating_add(1).saturating_sub(now);
        let left = Duration::from_millis(ticks_left.saturating_mul(layout.tick_ms().into()));
        if left < options.least_lifetime {
            return Err(StartError::LifetimeTooShort { left, least: options.least_lifetime });
        }
        let started_in = options.floor.unwrap_or(now.saturating_add(rules.max_ahead));
        Ok(Self {
            state: Padded(AtomicU64::new(rules.ticket_after(started_in) - 1)),
            horizon_end: AtomicU64::new(rules.ticket_after(options.horizon.unwrap_or(u64::MAX))),
            span: (rules.max_ahead + 1) << rules.sequence_bits,
            floor: options.floor.unwrap_or(0),
            rules,
            stamp: Stamp::new(layout, worker),
            layout: *layout,
            worker,
            clock,
        })
    }

    /// Issues one ID, or says why not now.
    ///
    /// # Errors
    /// The reason, and how long it lasts.
    #[inline]
    pub fn try_next(&self) -> Result<Id, NotReady> {
        self.one_ticket().map(|ticket| self.stamp.id(ticket))
    }

    /// One ticket, by the fast path if that can be.
    #[inline]
    fn one_ticket(&self) -> Result<u64, NotReady> {
        self.ticket_in_open_tick().map_or_else(|| self.take_one(), Ok)
    }

    #[inline]
    pub(crate) fn ticket_in_open_tick(&self) -> Option<u64> {
        self.carry_on(self.clock.tick()?)
    }

    #[cold]
    pub(crate) fn take_one(&self) -> Result<u64, NotReady> {
        self.take(Ask::exactly(1)).map(|granted| granted.first)
    }

    /// Issues exactly `n` IDs, or says why not now. None are lost by asking.
    ///
    /// # Errors
    /// The reason, and how long it lasts. More IDs than fit into the ticks that may be open at
    /// once are [`NotReady::BatchTooLarge`].
    #[inline]
    pub fn try_batch(&self, n: u32) -> Result<Batch, NotReady> {
        self.batch_of(n, Ask::exactly(n.into()))
    }

    /// Issues as many IDs as can be issued now, up to `n` and at least one; none for 0.
    ///
    /// # Errors
    /// Why not even one.
    #[inline]
    pub fn try_up_to(&self, n: u32) -> Result<Batch, NotReady> {
        self.batch_of(n, Ask::up_to(n.into()))
    }

    /// As [`try_up_to`](Self::try_up_to), and leaves so many of the ticks that may run ahead of the clock to
    /// other calls.
    ///
    /// # Errors
    /// As for `try_up_to`.
    pub fn try_up_to_leaving(&self, n: u32, ticks: u64) -> Result<Batch, NotReady> {
        let mut batch = Batch::empty(self.stamp);
        if n > 0 {
            let max_ahead = self.rules.max_ahead.saturating_sub(ticks);
            let rules = Rules { max_ahead, ..self.rules };
            batch.push(self.take_by(&rules, 0, u64::MAX, Ask::up_to(n.into()))?);
        }
        Ok(batch)
    }

    fn batch_of(&self, n: u32, ask: Ask) -> Result<Batch, NotReady> {
        let mut batch = Batch::empty(self.stamp);
        match n {
            0 => {}
            1 => batch.push(Granted { first: self.one_ticket()?, count: 1 }),
            _ => batch.push(self.take(ask)?),
        }
        Ok(batch)
    }

    /// As [`try_batch`](Self::try_batch), with ticks of a range alone. A tick that is further ahead
    /// than IDs may run is waited for, as a used-up sequence is.
    ///
    /// # Errors
    /// As for `try_batch`; past the range it is [`NotReady::Horizon`].
    pub fn try_batch_within(&self, n: u32, within: Within) -> Result<Batch, NotReady> {
        self.batch_within(n, Ask::exactly(n.into()), within)
    }

    /// As [`try_up_to`](Self::try_up_to), with ticks of a range alone.
    ///
    /// # Errors
    /// As for [`try_batch_within`](Self::try_batch_within).
    pub fn try_up_to_within(&self, n: u32, within: Within) -> Result<Batch, NotReady> {
        self.batch_within(n, Ask::up_to(n.into()), within)
    }

    fn batch_within(&self, n: u32, ask: Ask, within: Within) -> Result<Batch, NotReady> {
        let mut batch = Batch::empty(self.stamp);
        if n > 0 {
            let before = self.rules.ticket_after(within.above) - 1;
            batch.push(self.take_by(&self.rules, before, within.up_to, ask)?);
        }
        Ok(batch)
    }

    /// Whether an ID could be issued now. Takes none.
    ///
    /// # Errors
    /// Why not.
    pub fn check(&self) -> Result<(), NotReady> {
        // Relaxed: as in `carry_on`.
        let last = self.state.0.load(Ordering::Relaxed);
        if last >= CLOSED {
            return Err(NotReady::Closed);
        }
        step(&self.rules, self.bounds(), last, self.clock.read(), Ask::exactly(1)).map(|_| ())
    }

    /// The fast path: takes the ticket after the last, when that is what [`step`] answers.
    ///
    /// While `now` is within the layout, `step` grants `last + 1` if it is not before the first
    /// ticket of `now`, not past the ticks that may run ahead of `now`, and not past the horizon.
    /// All three are tested on the loaded word, and again on the ticket obtained: the word only
    /// rises, so that ticket is what `step` grants for the word that the addition met. A thread
    /// that raced past an end loses its ticket, and `step` decides anew.
    #[inline]
    fn carry_on(&self, now: u64) -> Option<u64> {
        if now > self.rules.last_tick {
            return None;
        }
        let opening = now << self.rules.sequence_bits;
        // Relaxed: a horizon stands for itself, and an old one is only lower.
        let horizon_end = self.horizon_end.load(Ordering::Relaxed);
        // The difference wraps to a huge number for a ticket before the opening.
        let fits = |ticket: u64| ticket.wrapping_sub(opening) < self.span && ticket < horizon_end;
        // Relaxed: one location carries all of the state, and an ID publishes no other memory.
        if !fits(self.state.0.load(Ordering::Relaxed) + 1) {
            return None;
        }
        // Relaxed: as above.
        let ticket = self.state.0.fetch_add(1, Ordering::Relaxed) + 1;
        fits(ticket).then_some(ticket)
    }

    /// The complete path: one compare-and-swap from the last ticket to what [`step`] grants.
    pub(crate) fn take(&self, ask: Ask) -> Result<Granted, NotReady> {
        self.take_by(&self.rules, 0, u64::MAX, ask)
    }

    /// The same after a ticket, as if that were the last one, and up to a tick, by rules that are at least as
    /// strict as the generator's own.
    fn take_by(
        &self,
        rules: &Rules,
        before: u64,
        up_to: u64,
        ask: Ask,
    ) -> Result<Granted, NotReady> {
        loop {
            // Relaxed: as in `carry_on`. Loaded before the clock is read: a time older than the
            // ticket would look like a used-up sequence.
            let last = self.state.0.load(Ordering::Relaxed);
            if last >= CLOSED {
                return Err(NotReady::Closed);
            }
            let reading = self.clock.read();
            let bounds = Bounds { floor: self.floor, horizon: self.horizon().min(up_to) };
            let granted = step(rules, bounds, last.max(before), reading, ask)?;
            // Relaxed: as in `carry_on`.
            let swapped = self.state.0.compare_exchange_weak(
                last,
                granted.last(),
                Ordering::Relaxed,
                Ordering::Relaxed,
            );
            if swapped.is_ok() {
                return Ok(granted);
            }
        }
    }

    fn bounds(&self) -> Bounds {
        Bounds { floor: self.floor, horizon: self.horizon() }
    }

    /// Allows ticks up to this one. Never lowers the horizon.
    pub fn raise_horizon(&self, tick: u64) {
        // Relaxed: as in `carry_on`.
        self.horizon_end.fetch_max(self.rules.ticket_after(tick), Ordering::Relaxed);
    }

    /// The last tick that may be stamped for now.
    #[must_use]
    pub fn horizon(&self) -> u64 {
        // Relaxed: as in `carry_on`.
        (self.horizon_end.load(Ordering::Relaxed) >> self.rules.sequence_bits) - 1
    }

    /// The tick that this generator started above.
    #[must_use]
    pub const fn floor(&self) -> u64 {
        self.floor
    }

    /// The highest tick that may have been stamped so far; `None` when closed.
    #[must_use]
    pub fn last_tick(&self) -> Option<u64> {
        // Relaxed: as in `carry_on`.
        let last = self.state.0.load(Ordering::Relaxed);
        (last < CLOSED).then(|| self.stamped(last))
    }

    /// Ends this generator for good. Returns the last tick, or `None` if it was closed before.
    ///
    /// When this returns, no call issues another ID, and every ID issued is at or below the tick.
    pub fn close(&self) -> Option<Closed> {
        // Relaxed: the swap and every grant are changes of one location, which have one order. A
        // flag in another word could be set between a thread's test of it and its grant.
        let last = self.state.0.swap(CLOSED, Ordering::Relaxed);
        (last < CLOSED).then(|| Closed { last_tick: self.stamped(last) })
    }

    /// The highest tick stamped when `last` was the last ticket: racing threads may have taken it
    /// past the horizon, and tickets there were lost.
    fn stamped(&self, last: u64) -> u64 {
        (last >> self.rules.sequence_bits).min(self.horizon()).max(self.floor)
    }

    /// The layout of the IDs.
    #[must_use]
    pub const fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The worker number in the IDs.
    #[must_use]
    pub const fn worker(&self) -> u64 {
        self.worker
    }
}
