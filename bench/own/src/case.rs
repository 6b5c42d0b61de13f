//! What is measured.

use std::fmt;
use std::hint::black_box;

/// IDs between two looks at the clock: enough that the look costs less than 1 % of the cheapest
/// IDs, few enough that the slowest contender still ends in time.
const STEP_IDS: u64 = 4096;

/// A named piece of work, repeated on one or more threads that share what it captures.
pub struct Case<'a> {
    name: String,
    ids_per_step: u64,
    worker: Box<dyn Fn() -> Step<'a> + Sync + 'a>,
}

/// One thread's share: each call issues the IDs of a step.
pub(crate) type Step<'a> = Box<dyn FnMut() + 'a>;

impl<'a> Case<'a> {
    /// Work of which each call makes one ID.
    pub fn new<T>(name: impl Into<String>, one: impl Fn() -> T + Sync + Copy + 'a) -> Self {
        Self::with_state(name, 1, || (), move |()| one())
    }

    /// Work of which each call makes `ids_per_call` IDs with a state that every thread has for
    /// itself, such as a buffer.
    pub fn with_state<S: 'a, T>(
        name: impl Into<String>,
        ids_per_call: u32,
        state: impl Fn() -> S + Sync + 'a,
        call: impl Fn(&mut S) -> T + Sync + Copy + 'a,
    ) -> Self {
        let calls = (STEP_IDS / u64::from(ids_per_call)).max(1);
        let worker = move || -> Step<'a> {
            let mut state = state();
            Box::new(move || {
                for _ in 0..calls {
                    black_box(call(&mut state));
                }
            })
        };
        let ids_per_step = calls * u64::from(ids_per_call);
        Self { name: name.into(), ids_per_step, worker: Box::new(worker) }
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(crate) const fn ids_per_step(&self) -> u64 {
        self.ids_per_step
    }

    pub(crate) fn worker(&self) -> Step<'a> {
        (self.worker)()
    }
}

impl fmt::Debug for Case<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Case").field("name", &self.name).finish_non_exhaustive()
    }
}
