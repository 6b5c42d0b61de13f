//! `frazil bench`: how fast Ids are issued.

use std::io;
use std::iter;
use std::num::NonZero;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use frazil_id::{Clock, Generator, Id, NotReady, Options, SystemClock, TickerClock};
use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;

use crate::args::{BenchArgs, ClockArg};
use crate::output::{Data, Exit, Failure, say};
use crate::progress;

/// Ids that `--verify` keeps: 800 MB. A run that reaches this ends early and says so.
const VERIFIED_MAX: u64 = 100_000_000;
/// Calls after which a thread adds to the count of all: the threads share that word.
const CALLS_BETWEEN_COUNTS: u64 = 1024;
/// Ticks longer than this do not end a call in time.
const TICK_MS_MAX: u32 = 1000;
/// How often the display changes.
const REFRESH: Duration = Duration::from_millis(100);

pub(crate) fn run(args: &BenchArgs) -> Result<(), Failure> {
    let report = match args.clock {
        ClockArg::System => measure(args, SystemClock::new(&args.layout.layout))?,
        ClockArg::Ticker => {
            let clock = TickerClock::start(&args.layout.layout).map_err(|error| {
                Failure::new(Exit::Unavailable, format_args!("no thread for the clock: {error}"))
            })?;
            measure(args, clock)?
        }
    };
    let mut data = Data::new();
    if args.json {
        data.json(&report)?;
    } else {
        report
            .lines()
            .try_for_each(|(name, value)| data.text(format_args!("{name:<10} {value}")))?;
    }
    data.flush()?;
    match &report.fault {
        None => Ok(()),
        Some(fault) => Err(Failure::new(Exit::No, fault)),
    }
}

#[derive(Serialize)]
struct Report {
    ids: u64,
    seconds: f64,
    ids_per_second: f64,
    /// Of what the layout allows one worker.
    share_of_cap: f64,
    ns_per_id: f64,
    cpu_ns_per_id: f64,
    /// Cores kept busy on average.
    cores: f64,
    threads: u64,
    batch: u64,
    /// Ids proved distinct and in order; absent without `--verify`.
    verified: Option<u64>,
    fault: Option<String>,
}

impl Report {
    fn lines(&self) -> impl Iterator<Item = (&'static str, String)> {
        let share = self.share_of_cap * 100.0;
        let verified = self.verified.map(|ids| match &self.fault {
            None => ("verified", format!("{ids} Ids: no duplicates, order holds")),
            Some(fault) => ("verified", format!("{ids} Ids: {fault}")),
        });
        [
            ("Ids", format!("{} in {:.3} s", self.ids, self.seconds)),
            ("rate", format!("{:.0} Ids/s, {share:.2} % of the layout's cap", self.ids_per_second)),
            ("time", format!("{:.2} ns an Id", self.ns_per_id)),
            ("CPU", format!("{:.2} ns an Id, {:.2} cores", self.cpu_ns_per_id, self.cores)),
        ]
        .into_iter()
        .chain(verified)
    }
}

#[expect(clippy::disallowed_methods, reason = "this measures")]
#[expect(clippy::cast_precision_loss, reason = "a rate is not exact to 2^-53")]
fn measure<C: Clock + Sync>(args: &BenchArgs, clock: C) -> Result<Report, Failure> {
    let cores = thread::available_parallelism().map_or(1, NonZero::get) as u64;
    let threads = if args.threads == 0 { cores } else { args.threads };
    let layout = &args.layout.layout;
    check(args, threads)?;
    let ids = Generator::new(layout, 0, clock, Options::default())?;
    ids.next()?;
    let load = Load {
        ids: &ids,
        batch: u32::try_from(args.batch).expect("limited by the arguments"),
        keep_max: if args.verify { VERIFIED_MAX / threads } else { 0 },
        stop: AtomicBool::new(false),
        issued: AtomicU64::new(0),
    };
    let (cpu_before, before) = (cpu_time(), Instant::now());
    let of_threads = load.run(threads, args.duration)?;
    let (elapsed, cpu) = (before.elapsed(), cpu_time().saturating_sub(cpu_before));
    let ids = load.issued.into_inner();
    let (seconds, count, each) = (elapsed.as_secs_f64(), ids as f64, 1.0 / ids.max(1) as f64);
    if args.verify && elapsed < args.duration {
        say(format_args!("ended early: {VERIFIED_MAX} Ids are all that is kept to verify"));
    }
    Ok(Report {
        ids,
        seconds,
        ids_per_second: count / seconds,
        share_of_cap: count / seconds / layout.ids_per_second() as f64,
        ns_per_id: seconds * 1e9 * each,
        cpu_ns_per_id: cpu.as_secs_f64() * 1e9 * each,
        cores: cpu.as_secs_f64() / seconds,
        threads,
        batch: args.batch,
        verified: args.verify.then(|| of_threads.iter().map(|ids| ids.len() as u64).sum()),
        fault: find_fault(&of_threads),
    })
}

/// Refuses what would not end in time or not fit into memory.
fn check(args: &BenchArgs, threads: u64) -> Result<(), Failure> {
    let layout = &args.layout.layout;
    let tick_ms = layout.tick_ms();
    if tick_ms > TICK_MS_MAX {
        return Err(Failure::usage(format_args!(
            "a tick of {tick_ms} ms is too long to measure: use a layout with at most {TICK_MS_MAX} ms"
        )));
    }
    let (batch, per_second) = (args.batch, layout.ids_per_second());
    if batch > per_second {
        return Err(Failure::usage(format_args!(
            "a batch of {batch} takes over a second: the layout allows {per_second} Ids a second"
        )));
    }
    if args.verify && batch * threads > VERIFIED_MAX {
        return Err(Failure::usage(format_args!(
            "{threads} threads with batches of {batch} are too much to verify: at most \
             {VERIFIED_MAX} Ids are kept"
        )));
    }
    Ok(())
}

/// What the threads of a measurement share.
struct Load<'a, C> {
    ids: &'a Generator<C>,
    batch: u32,
    /// Ids that each thread keeps; the run ends when one has that many. 0 keeps none.
    keep_max: u64,
    stop: AtomicBool,
    issued: AtomicU64,
}

impl<C: Clock + Sync> Load<'_, C> {
    /// Issues on so many threads for so long, and returns the Ids each thread kept.
    fn run(&self, threads: u64, duration: Duration) -> Result<Vec<Vec<Id>>, Failure> {
        // Held until all threads exist: those that run would slow the start of the others.
        let gate = Mutex::new(());
        thread::scope(|scope| {
            let (ended, endings) = mpsc::channel::<()>();
            let closed = gate.lock();
            let threads: io::Result<Vec<_>> = (0..threads)
                .map(|_| {
                    let (ended, gate) = (ended.clone(), &gate);
                    thread::Builder::new().spawn_scoped(scope, move || {
                        drop(gate.lock());
                        let outcome = self.issue();
                        // Nobody listens once the time is up.
                        let _ = ended.send(());
                        outcome
                    })
                })
                .collect();
            if threads.is_ok() {
                drop(closed);
                self.wait(&endings, duration);
            }
            // Relaxed: the threads look at it now and then, and publish nothing by it. If not all
            // of them could start, those that did see it as soon as the gate opens.
            self.stop.store(true, Ordering::Relaxed);
            let threads = threads.map_err(|error| {
                Failure::new(Exit::Unavailable, format_args!("not enough threads: {error}"))
            })?;
            threads
                .into_iter()
                .map(|thread| thread.join().expect("issuing does not panic"))
                .collect::<Result<_, NotReady>>()
                .map_err(Failure::from)
        })
    }

    /// Waits until the time is up or a thread has ended, and shows how far the run is.
    #[expect(clippy::disallowed_methods, reason = "this measures")]
    #[expect(clippy::cast_precision_loss, reason = "a rate is not exact to 2^-53")]
    fn wait(&self, endings: &mpsc::Receiver<()>, duration: Duration) {
        let bar = progress::time(duration);
        let start = Instant::now();
        while let Some(left) = duration.checked_sub(start.elapsed()) {
            if endings.recv_timeout(left.min(REFRESH)) != Err(RecvTimeoutError::Timeout) {
                break;
            }
            // Relaxed: a number to look at.
            let issued = self.issued.load(Ordering::Relaxed) as f64;
            let elapsed = start.elapsed();
            bar.set_position(u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX));
            bar.set_message(format!("{:.0} Ids/s", issued / elapsed.as_secs_f64()));
        }
        bar.finish_and_clear();
    }

    fn issue(&self) -> Result<Vec<Id>, NotReady> {
        let mut kept = Vec::new();
        // Growing in the middle of the measurement would cost ticks. Where memory is short, it grows.
        let _ = kept.try_reserve(usize::try_from(self.keep_max).unwrap_or(usize::MAX));
        let mut is_done = false;
        while !is_done {
            let mut calls = 0;
            while !is_done && calls < CALLS_BETWEEN_COUNTS {
                self.call(&mut kept)?;
                calls += 1;
                let is_full = kept.len() as u64 + u64::from(self.batch) > self.keep_max;
                // Relaxed: see `run`.
                is_done = self.stop.load(Ordering::Relaxed) || self.keep_max > 0 && is_full;
            }
            // Relaxed: a counter.
            self.issued.fetch_add(calls * u64::from(self.batch), Ordering::Relaxed);
        }
        Ok(kept)
    }

    fn call(&self, kept: &mut Vec<Id>) -> Result<(), NotReady> {
        if self.batch == 1 {
            let id = std::hint::black_box(self.ids.next()?);
            kept.extend((self.keep_max > 0).then_some(id));
        } else {
            let batch = std::hint::black_box(self.ids.batch(self.batch)?);
            if self.keep_max > 0 {
                kept.extend(&batch);
            }
        }
        Ok(())
    }
}

/// Checks that each thread's Ids increase and that no two of all are equal.
fn find_fault(of_threads: &[Vec<Id>]) -> Option<String> {
    for ids in of_threads {
        if let Some(pair) = ids.windows(2).find(|pair| pair[0] >= pair[1]) {
            return Some(format!("{} was followed by {} on one thread", pair[0], pair[1]));
        }
    }
    // Each list is sorted, so equal Ids follow each other when the lists are merged.
    let mut lists: Vec<&[Id]> = of_threads.iter().map(Vec::as_slice).collect();
    let mut last = None;
    iter::from_fn(|| take_smallest(&mut lists))
        .find(|id| last.replace(*id) == Some(*id))
        .map(|id| format!("{id} was issued twice"))
}

fn take_smallest(lists: &mut [&[Id]]) -> Option<Id> {
    let list = lists.iter_mut().filter(|ids| !ids.is_empty()).min_by_key(|ids| ids[0])?;
    let (first, rest) = list.split_first()?;
    *list = rest;
    Some(*first)
}

fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(of_threads: &[&[u64]]) -> Option<String> {
        let ids: Vec<Vec<Id>> =
            of_threads.iter().map(|ids| ids.iter().copied().map(Id::from_u64).collect()).collect();
        find_fault(&ids)
    }

    #[test]
    fn the_check_finds_duplicates_and_steps_back() {
        assert_eq!(fault(&[&[1, 4, 5], &[2, 3, 6], &[]]), None);
        assert_eq!(fault(&[&[1, 4], &[2, 4]]).as_deref(), Some("4 was issued twice"));
        assert_eq!(fault(&[&[1, 1]]).as_deref(), Some("1 was followed by 1 on one thread"));
        assert_eq!(fault(&[&[2, 1]]).as_deref(), Some("2 was followed by 1 on one thread"));
    }
}
