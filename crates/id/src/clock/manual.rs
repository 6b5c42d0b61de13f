//! A clock that a test moves.

use core::time::Duration;

use super::{Clock, Reading, Timeline, Wait};
use crate::layout::Layout;
use crate::sync::{AtomicU64, Ordering};

/// A clock for tests: [`advance`](Self::advance) lets time pass, [`step_to`](Self::step_to) sets
/// real time as an operator or NTP would.
///
/// It moves only when told. So `Generator::next` and `Generator::batch` do not wait for one made
/// with [`new`](Self::new): they return what `try_next` does. One made with
/// [`advancing`](Self::advancing) moves on whenever they would wait, so that no test sleeps.
///
/// A generator with default [`Options`](crate::Options) starts after the tick that it finds, so the
/// first ID needs a clock that moves.
///
/// ```
/// # #[cfg(feature = "std")] {
/// use frazil_id::{Generator, Layout, ManualClock, NotReady, Options};
///
/// let layout = Layout::FRAZIL;
/// let ids = Generator::new(&layout, 7, ManualClock::advancing(&layout, 1_000), Options::default())?;
/// assert_eq!(ids.next()?.parts(&layout)?.tick, 1_001);
/// assert_eq!(ids.batch(10_000)?.len(), 10_000); // takes three ticks and no time
///
/// let clock = ManualClock::new(&layout, 1_000);
/// let ids = Generator::new(&layout, 7, &clock, Options::default())?;
/// assert!(matches!(ids.next(), Err(NotReady::SequenceExhausted { .. })));
/// clock.advance(1);
/// assert_eq!(ids.next()?.parts(&layout)?.tick, 1_001);
/// # }
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct ManualClock {
    timeline: Timeline,
    epoch_ms: u64,
    tick_ms: u64,
    real_ms: AtomicU64,
    elapsed_ms: AtomicU64,
    advances: bool,
}

impl ManualClock {
    /// A clock that stands at the start of a tick of the layout.
    #[must_use]
    pub fn new(layout: &Layout, tick: u64) -> Self {
        Self::start(layout, tick, false)
    }

    /// The same, but when somebody waits for it, it moves on by the time to wait at once.
    #[must_use]
    pub fn advancing(layout: &Layout, tick: u64) -> Self {
        Self::start(layout, tick, true)
    }

    fn start(layout: &Layout, tick: u64, advances: bool) -> Self {
        let clock = Self {
            timeline: Timeline::new(layout),
            epoch_ms: layout.epoch_ms(),
            tick_ms: layout.tick_ms().into(),
            real_ms: AtomicU64::new(0),
            elapsed_ms: AtomicU64::new(0),
            advances,
        };
        clock.step_to(tick);
        clock
    }

    /// Sets real time to the start of a tick; no time passes.
    pub fn step_to(&self, tick: u64) {
        self.step_to_unix_ms(self.epoch_ms.saturating_add(tick.saturating_mul(self.tick_ms)));
    }

    /// Sets real time; no time passes.
    pub fn step_to_unix_ms(&self, unix_ms: u64) {
        // Relaxed, here and below: each word stands for itself.
        self.real_ms.store(unix_ms, Ordering::Relaxed);
    }

    /// Lets that many ticks pass.
    pub fn advance(&self, ticks: u64) {
        let ms = ticks.saturating_mul(self.tick_ms);
        self.real_ms.fetch_add(ms, Ordering::Relaxed);
        self.elapsed_ms.fetch_add(ms, Ordering::Relaxed);
    }

    fn real(&self) -> Duration {
        Duration::from_millis(self.real_ms.load(Ordering::Relaxed))
    }
}

impl Clock for ManualClock {
    fn tick(&self) -> Option<u64> {
        self.timeline.tick(|| self.real())
    }

    fn read(&self) -> Reading {
        let elapsed = || Duration::from_millis(self.elapsed_ms.load(Ordering::Relaxed));
        self.timeline.observe(|| self.real(), elapsed)
    }

    fn wait(&self, time: Duration) -> Wait {
        if !self.advances {
            return Wait::Never;
        }
        let tick = Duration::from_millis(self.tick_ms);
        let ticks = time.as_nanos().div_ceil(tick.as_nanos());
        self.advance(u64::try_from(ticks).unwrap_or(u64::MAX));
        Wait::Passed
    }
}
