//! The generators of the race, and what their IDs say.

use ferroid::generator::AtomicSnowflakeGenerator;
use ferroid::time::TimeSource;
use frazil_bench::Case;
use frazil_id::{Clock, Generator};
use uuid::Uuid;

ferroid::define_snowflake_id!(
    /// The bits of the uncapped layout, which ferroid wants as a type.
    Wide, u64, reserved: 0, timestamp: 41, machine_id: 1, sequence: 22
);

/// How uuid gets random bits is a feature of the crate, and so of the whole build: bits of the operating
/// system for each ID, or those of a generator in the process (`fast-rng`).
pub(crate) const UUID: &str =
    if HAS_FAST_RNG { "uuid, Uuid::now_v7, fast-rng" } else { "uuid, Uuid::now_v7" };
pub(crate) const HAS_FAST_RNG: bool = cfg!(feature = "fast-rng");

/// What is measured, and a way to look at the IDs of the same generator.
pub(crate) struct Contender<'a> {
    pub(crate) case: Case<'a>,
    sample: Box<dyn Fn() -> Sample + Sync + 'a>,
}

/// An ID of any generator.
#[derive(Clone, Copy)]
pub(crate) struct Sample {
    pub(crate) bits: u128,
    pub(crate) unix_ms: u64,
}

impl<'a> Contender<'a> {
    pub(crate) fn frazil<C: Clock + Sync>(name: &str, ids: &'a Generator<C>) -> Self {
        let layout = ids.layout();
        let next = || ids.next().expect("the clock does not step");
        Self::new(name, next, || {
            let id = ids.next().expect("the clock does not step");
            let parts = id.parts(layout).expect("the ID is of the generator's layout");
            Sample { bits: id.to_u64().into(), unix_ms: layout.unix_ms(parts.tick) }
        })
    }

    /// `wait` is what a thread does when another one was faster, and when a tick is used up.
    pub(crate) fn ferroid<T: TimeSource<u64> + Sync>(
        name: &str,
        ids: &'a AtomicSnowflakeGenerator<Wide, T>,
        epoch_ms: u64,
        wait: impl Fn() + Sync + Copy + 'a,
    ) -> Self {
        let next = move || ids.next_id(|_| wait());
        Self::new(name, next, move || {
            let id = ids.next_id(|_| wait());
            Sample { bits: id.to_raw().into(), unix_ms: epoch_ms + id.timestamp() }
        })
    }

    pub(crate) fn uuid_v7() -> Self {
        Self::new(UUID, Uuid::now_v7, || {
            let id = Uuid::now_v7();
            let time = id.get_timestamp().expect("version 7 has a time");
            let (seconds, nanos) = time.to_unix();
            Sample { bits: id.as_u128(), unix_ms: seconds * 1000 + u64::from(nanos / 1_000_000) }
        })
    }

    /// The two closures make the same call, each for itself: one that has two callers is not
    /// inlined into the measured loop.
    fn new<T>(
        name: &str,
        next: impl Fn() -> T + Sync + Copy + 'a,
        sample: impl Fn() -> Sample + Sync + 'a,
    ) -> Self {
        Self { case: Case::new(name, next), sample: Box::new(sample) }
    }

    pub(crate) fn sample(&self) -> Sample {
        (self.sample)()
    }
}
