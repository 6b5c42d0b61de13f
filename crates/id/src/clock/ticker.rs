//! A clock for callers who count nanoseconds.

use alloc::sync::Arc;
use core::time::Duration;
use std::io;
use std::thread::{self, JoinHandle};

use super::{Clock, Reading, SystemClock};
use crate::layout::Layout;
use crate::sync::{AtomicU64, Ordering, Padded};

/// How long the thread sleeps between two publications. With the timer slack of Linux (50 us) it
/// publishes more than twice a millisecond.
const PERIOD: Duration = Duration::from_micros(400);
/// After this many publications (about 60 ms) the thread parks; a reader wakes it at once, so an
/// idle process has no wake-ups and a busy one pays for one exact read in 60 ms.
const PUBLICATIONS: u32 = 128;

/// Words from here on are no ticks.
const NO_TICK: u64 = 1 << 63;
/// The thread sleeps; the next exact reading wakes it.
const PARKED: u64 = NO_TICK;
/// A reader is waking the thread.
const WAKING: u64 = NO_TICK + 1;
/// Real time stepped back or is before the epoch: readers take the exact path.
const EXACT: u64 = NO_TICK + 2;
/// The clock is being dropped.
const STOPPED: u64 = NO_TICK + 3;

/// Publishes the tick from a thread of its own, so that a read is one relaxed load.
///
/// A reading is at most about half a millisecond old; if the thread is late, stamps are a little
/// older and nothing else changes. The thread parks when nobody reads and ends with the clock.
#[derive(Debug)]
pub struct TickerClock {
    shared: Arc<Shared>,
    /// Present until the drop.
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    /// The tick, or one of the words above.
    word: Padded<AtomicU64>,
    exact: SystemClock,
}

impl TickerClock {
    /// Starts the thread.
    ///
    /// # Errors
    /// If the operating system gives no thread.
    pub fn start(layout: &Layout) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            word: Padded(AtomicU64::new(WAKING)),
            exact: SystemClock::new(layout),
        });
        let publisher = Arc::clone(&shared);
        let thread =
            thread::Builder::new().name("frazil-ticker".into()).spawn(move || publisher.run())?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Wakes the thread if it sleeps.
    fn wake(&self) {
        // Relaxed: nothing but the word is published. Only one reader gets to wake the thread, and
        // those who find it awake leave the word alone, which others are reading.
        let word = &self.shared.word.0;
        if word.load(Ordering::Relaxed) == PARKED
            && word.compare_exchange(PARKED, WAKING, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        {
            self.unpark();
        }
    }

    fn unpark(&self) {
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }
}

impl Shared {
    fn run(&self) {
        loop {
            for _ in 0..PUBLICATIONS {
                let word = self.exact.tick().filter(|tick| *tick < NO_TICK).unwrap_or(EXACT);
                if !self.publish(word) {
                    return;
                }
                #[expect(clippy::disallowed_methods, reason = "the ticker owns this timer")]
                thread::sleep(PERIOD);
            }
            if !self.publish(PARKED) {
                return;
            }
            // Relaxed: `park` orders what came before the matching `unpark`.
            while self.word.0.load(Ordering::Relaxed) == PARKED {
                thread::park();
            }
        }
    }

    /// Publishes a tick that a reader knows before the thread does: at the cap, callers wake with
    /// the tick, and would all read the system's clock until the thread has woken too.
    fn catch_up(&self, tick: u64) {
        // Relaxed: nothing but the word is published. Words that are no ticks are higher and stay.
        if self.word.0.load(Ordering::Relaxed) < tick {
            self.word.0.fetch_max(tick, Ordering::Relaxed);
        }
    }

    /// Replaces the word; false when the clock is being dropped.
    fn publish(&self, word: u64) -> bool {
        // Relaxed: nothing but the word is published.
        let swapped = self.word.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |old| {
            (old != STOPPED).then_some(word)
        });
        swapped.is_ok()
    }
}

impl Clock for TickerClock {
    #[inline]
    fn tick(&self) -> Option<u64> {
        // Relaxed: a tick stands for itself, and an old one only makes a stamp a little old.
        let word = self.shared.word.0.load(Ordering::Relaxed);
        (word < NO_TICK).then_some(word)
    }

    fn read(&self) -> Reading {
        self.wake();
        let reading = self.shared.exact.read();
        if let Reading::At(now) = reading {
            self.shared.catch_up(now.tick);
        }
        reading
    }
}

impl Drop for TickerClock {
    fn drop(&mut self) {
        // Relaxed: nothing but the word is published.
        self.shared.word.0.store(STOPPED, Ordering::Relaxed);
        self.unpark();
        if let Some(thread) = self.thread.take() {
            // The thread runs nothing that panics; if it did, the clock is gone either way.
            let _ = thread.join();
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    /// Waits, by reading the clock, until its word is as wanted.
    fn until(clock: &TickerClock, wanted: impl Fn(u64) -> bool) -> u64 {
        loop {
            let word = clock.shared.word.0.load(Ordering::Relaxed);
            if wanted(word) {
                return word;
            }
            thread::yield_now();
        }
    }

    #[test]
    fn it_publishes_ticks_parks_when_nobody_reads_and_wakes_for_the_next_reader() {
        let clock = TickerClock::start(&Layout::FRAZIL).unwrap();
        let first = until(&clock, |word| word < NO_TICK);
        until(&clock, |word| word < NO_TICK && word > first);
        until(&clock, |word| word == PARKED);
        // Parked: a reader asks for the exact time, and the thread publishes again.
        assert_eq!(clock.tick(), None);
        assert!(matches!(clock.read(), Reading::At(now) if now.tick > first));
        until(&clock, |word| word < NO_TICK);
    }

    #[test]
    fn a_reader_publishes_the_tick_it_read_but_never_wakes_a_word_that_is_none() {
        let clock = TickerClock::start(&Layout::FRAZIL).unwrap();
        until(&clock, |word| word < NO_TICK);
        clock.shared.word.0.store(5, Ordering::Relaxed);
        assert!(matches!(clock.read(), Reading::At(now) if Some(now.tick) <= clock.tick()));
        until(&clock, |word| word == PARKED);
        clock.shared.catch_up(7);
        assert_eq!(clock.tick(), None);
    }

    #[test]
    fn it_never_says_a_tick_that_has_not_begun() {
        let clock = TickerClock::start(&Layout::FRAZIL).unwrap();
        let exact = SystemClock::new(&Layout::FRAZIL);
        for _ in 0..200_000 {
            let (cheap, now) = (clock.tick(), exact.tick());
            assert!(cheap <= now, "{cheap:?} {now:?}");
        }
    }

    #[test]
    fn dropping_it_ends_the_thread_in_every_state() {
        for wanted in [WAKING, PARKED] {
            let clock = TickerClock::start(&Layout::FRAZIL).unwrap();
            until(&clock, |word| word == wanted || wanted == WAKING);
            let shared = Arc::downgrade(&clock.shared);
            drop(clock);
            assert!(shared.upgrade().is_none());
        }
    }
}
