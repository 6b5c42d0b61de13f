//! One case, on some threads, for a stretch of time.

use std::iter::Sum;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use crate::case::Case;

/// A capped generator that had two steps ends each later one at the same place of a tick, so a run
/// is a whole number of ticks and its rate is not off by a part of one.
const WARM_UP_STEPS: u32 = 2;

/// What a run took.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    /// IDs made by all threads.
    pub ids: u64,
    /// From when the first thread passed the barrier to when the last one ended.
    pub wall: Duration,
    /// CPU time of the whole process, so that clock threads count too.
    pub cpu: Duration,
}

impl Run {
    /// Time for each ID, all threads together.
    #[must_use]
    pub fn wall_ns_per_id(&self) -> f64 {
        self.wall.as_secs_f64() * 1e9 / self.ids as f64
    }

    /// CPU time for each ID.
    #[must_use]
    pub fn cpu_ns_per_id(&self) -> f64 {
        self.cpu.as_secs_f64() * 1e9 / self.ids as f64
    }

    /// IDs a second, all threads together.
    #[must_use]
    pub fn ids_per_second(&self) -> f64 {
        self.ids as f64 / self.wall.as_secs_f64()
    }

    /// CPU time as a share of one core.
    #[must_use]
    pub fn cores_used(&self) -> f64 {
        self.cpu.as_secs_f64() / self.wall.as_secs_f64()
    }
}

/// Several runs as one.
impl Sum for Run {
    fn sum<I: Iterator<Item = Self>>(runs: I) -> Self {
        let nothing = Self { ids: 0, wall: Duration::ZERO, cpu: Duration::ZERO };
        runs.fold(nothing, |sum, run| Self {
            ids: sum.ids + run.ids,
            wall: sum.wall + run.wall,
            cpu: sum.cpu + run.cpu,
        })
    }
}

/// Runs a case on `threads` threads at once, each for `time` after a short warm-up.
#[must_use]
pub fn run(case: &Case<'_>, threads: usize, time: Duration) -> Run {
    let barrier = Barrier::new(threads);
    let laps: Vec<ThreadResult> = thread::scope(|scope| {
        let start = || scope.spawn(|| lap(case, &barrier, time));
        let workers: Vec<_> = (0..threads).map(|_| start()).collect();
        workers.into_iter().map(|worker| worker.join().expect("a case does not panic")).collect()
    });
    let first = laps.iter().map(|lap| lap.start.wall).min().expect("there is a thread");
    let last = laps.iter().map(|lap| lap.end.wall).max().expect("there is a thread");
    let cpu_first = laps.iter().map(|lap| lap.start.cpu).min().expect("there is a thread");
    let cpu_last = laps.iter().map(|lap| lap.end.cpu).max().expect("there is a thread");
    Run {
        ids: laps.iter().map(|lap| lap.ids).sum(),
        wall: last - first,
        cpu: cpu_last.saturating_sub(cpu_first),
    }
}

/// What one thread did.
struct ThreadResult {
    start: Stamp,
    end: Stamp,
    ids: u64,
}

#[derive(Clone, Copy)]
struct Stamp {
    wall: Instant,
    cpu: Duration,
}

fn lap(case: &Case<'_>, barrier: &Barrier, time: Duration) -> ThreadResult {
    let mut step = case.worker();
    for _ in 0..WARM_UP_STEPS {
        step();
    }
    barrier.wait();
    let start = Stamp { cpu: process_cpu(), wall: now() };
    let mut ids = 0;
    let mut wall = start.wall;
    while wall - start.wall < time {
        step();
        ids += case.ids_per_step();
        wall = now();
    }
    ThreadResult { start, end: Stamp { wall, cpu: process_cpu() }, ids }
}

#[expect(clippy::disallowed_methods, reason = "this is the stop watch")]
fn now() -> Instant {
    Instant::now()
}

fn process_cpu() -> Duration {
    let used = clock_gettime(ClockId::ProcessCPUTime);
    Duration::try_from(used).expect("CPU time is not negative")
}
