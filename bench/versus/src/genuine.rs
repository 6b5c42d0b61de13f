//! Makes sure that what was measured were IDs: a generator whose IDs repeat or whose time stands
//! still does less work and looks fast.

use std::thread;
use std::time::Duration;

use frazil_bench::{cores, run};

use crate::contender::{Contender, Sample};
use crate::real_time::now_unix_ms;

/// IDs that each thread takes, twice.
const SAMPLES: usize = 50_000;
/// Between the two, so that several ticks pass.
const PAUSE: Duration = Duration::from_millis(5);
/// How old a stamp may be. A ticker is late by a few milliseconds at worst, unless the whole
/// machine stood still.
const AGE_MAX_MS: u64 = 1000;

/// Takes IDs on all cores and asserts that they are distinct and that their time is real.
pub(crate) fn verify(contender: &Contender<'_>) {
    let name = contender.case.name();
    let before = take(contender);
    let _ = run(&contender.case, cores(), PAUSE);
    let after = take(contender);
    let (first_ms, last_ms) = (newest(&before), newest(&after));
    assert!(first_ms < last_ms, "{name}: time stood still at {first_ms}");
    let age_ms = now_unix_ms().abs_diff(last_ms);
    assert!(age_ms <= AGE_MAX_MS, "{name}: stamps are {age_ms} ms off");

    let mut bits: Vec<u128> = before.iter().chain(&after).map(|sample| sample.bits).collect();
    let taken = bits.len();
    bits.sort_unstable();
    bits.dedup();
    assert_eq!(bits.len(), taken, "{name}: some IDs were issued twice");
}

fn take(contender: &Contender<'_>) -> Vec<Sample> {
    let on_one_thread = || {
        let mut samples = Vec::with_capacity(SAMPLES);
        samples.extend((0..SAMPLES).map(|_| contender.sample()));
        samples
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..cores()).map(|_| scope.spawn(on_one_thread)).collect();
        let join = |worker: thread::ScopedJoinHandle<'_, Vec<Sample>>| worker.join();
        workers.into_iter().flat_map(|worker| join(worker).expect("sampling works")).collect()
    })
}

fn newest(samples: &[Sample]) -> u64 {
    samples.iter().map(|sample| sample.unix_ms).max().unwrap_or(0)
}
