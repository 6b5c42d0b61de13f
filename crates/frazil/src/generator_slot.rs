//! The generator of a lane, which can be replaced without anybody failing in between.

mod atomic_option;
#[cfg(all(test, loom))]
mod loom_tests;
#[cfg(all(test, shuttle))]
mod shuttle_tests;

use frazil_id::{Clock, Generator, NotReady};

use self::atomic_option::{AtomicBool, AtomicOption, AtomicU64, Ordering, give_way};

/// A generator and the token of the tenure it issues under.
#[derive(Debug)]
pub(crate) struct ActiveGenerator<C> {
    pub(crate) generator: Generator<C>,
    pub(crate) token: u64,
}

/// Passes calls on to the current generator, and from one to the next.
///
/// One caller replaces, raises and closes; any number issue.
#[derive(Debug)]
pub(crate) struct GeneratorSlot<C> {
    current: AtomicOption<ActiveGenerator<C>>,
    /// The highest tick of all generators before the current one.
    last_tick: AtomicU64,
    ended: AtomicBool,
}

impl<C: Clock> GeneratorSlot<C> {
    /// A slot without a generator yet.
    pub(crate) fn new() -> Self {
        Self {
            current: AtomicOption::empty(),
            last_tick: AtomicU64::new(0),
            ended: AtomicBool::new(false),
        }
    }

    /// Asks the current generator. `None`: there is none, because none was given or all is over.
    pub(crate) fn ask<T>(
        &self,
        ask: impl Fn(&ActiveGenerator<C>) -> Result<T, NotReady>,
    ) -> Option<Result<T, NotReady>> {
        loop {
            let asked = self.current.with(|active| ask(active))?;
            match asked {
                // Acquire: whoever sees the end also sees that nothing comes after it.
                Err(NotReady::Closed) if self.ended.load(Ordering::Acquire) => return None,
                // Closed to be replaced: the next one is there in a moment.
                Err(NotReady::Closed) => give_way(),
                asked => return Some(asked),
            }
        }
    }

    /// Closes the current generator and puts another in its place, which `make` starts above the
    /// tick it is given. If it cannot be made, there is none.
    pub(crate) fn replace<E>(
        &self,
        make: impl FnOnce(u64) -> Result<ActiveGenerator<C>, E>,
    ) -> Result<(), E> {
        let last = self.close_current();
        match make(last) {
            Ok(active) => {
                self.current.put(Some(active));
                Ok(())
            }
            Err(error) => {
                self.current.put(None);
                Err(error)
            }
        }
    }

    /// Raises the current generator's horizon.
    pub(crate) fn raise(&self, horizon_tick: u64) {
        self.current.with(|active| active.generator.raise_horizon(horizon_tick));
    }

    /// The highest tick that may have been stamped, by any of the generators.
    pub(crate) fn last_tick(&self) -> u64 {
        let current =
            self.current.with(|active| active.generator.last_tick()).flatten().unwrap_or(0);
        // Relaxed: only the one who closes writes it, and only that one asks for a limit.
        current.max(self.last_tick.load(Ordering::Relaxed))
    }

    /// Ends all issuing until the next generator is put in place; gives the highest tick.
    pub(crate) fn close(&self) -> u64 {
        // Release: pairs with the load in `ask`. Set first, so that nobody waits for a successor.
        self.ended.store(true, Ordering::Release);
        self.close_current()
    }

    /// Lets callers wait for a successor again.
    pub(crate) fn reopen(&self) {
        // Release: as in `close`.
        self.ended.store(false, Ordering::Release);
    }

    fn close_current(&self) -> u64 {
        let closed = self.current.with(|active| active.generator.close()).flatten();
        let last = closed.map_or(0, |closed| closed.last_tick);
        // Relaxed: as in `last_tick`.
        self.last_tick.fetch_max(last, Ordering::Relaxed).max(last)
    }
}
