//! Measuring the library in this process.

use std::io;
use std::num::NonZero;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use frazil_id::{Clock, Generator, Layout, NotReady, Options, SystemClock, TickerClock};
use tokio::runtime::Runtime;
use tokio::sync::mpsc;

use super::flags;
use super::load::no_threads;
use super::machine;
use super::moment::{cpu_of_process, now};
use super::report::{self, Config, FORM, Report, Results, Sample, Verify};
use super::verify::{Sender, Verifier};
use crate::args::{BenchArgs, ClockArg};
use crate::commands::elect::Signals;
use crate::output::{Exit, Failure, Signal};
use crate::progress;

/// How long it is measured unless somebody says.
const DURATION: Duration = Duration::from_secs(3);
/// Calls after which a thread adds to the count of all: the threads share that word.
const CALLS_BETWEEN_COUNTS: u64 = 1024;
/// Ticks longer than this do not end a call in time.
const TICK_MS_MAX: u32 = 1000;
/// How often the display changes.
const REFRESH: Duration = Duration::from_millis(100);
/// What a sample covers.
const SECOND: Duration = Duration::from_secs(1);

/// Measures the library; with the signal that ended it early, if one did.
pub(super) fn measure(args: &BenchArgs) -> Result<(Report, Option<Signal>), Failure> {
    flags::check_for_library(args)?;
    match clock(args) {
        ClockArg::System => measure_by(args, SystemClock::new(&layout(args))),
        ClockArg::Ticker => {
            let clock = TickerClock::start(&layout(args)).map_err(|error| {
                Failure::new(Exit::Unavailable, format_args!("no thread for the clock: {error}"))
            })?;
            measure_by(args, clock)
        }
    }
}

fn layout(args: &BenchArgs) -> Layout {
    args.layout.unwrap_or(Layout::FRAZIL)
}

fn clock(args: &BenchArgs) -> ClockArg {
    args.clock.unwrap_or(ClockArg::System)
}

fn measure_by<C: Clock + Sync>(
    args: &BenchArgs,
    clock: C,
) -> Result<(Report, Option<Signal>), Failure> {
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    let threads = usize::try_from(args.threads.unwrap_or(1)).expect("limited by the arguments");
    let threads = if threads == 0 { cores } else { threads };
    let layout = &layout(args);
    check(args)?;
    let ids = Generator::new(layout, 0, clock, Options::default())?;
    ids.next()?;
    let verifier = args.verify.then(|| Verifier::start(layout, false, threads)).transpose();
    let verifier = verifier.map_err(|error| no_threads(&error))?;
    let mut ear = Ear::open()?;
    let load = Load {
        ids: &ids,
        batch: u32::try_from(args.demand.batch).expect("limited by the arguments"),
        stop: AtomicBool::new(false),
        issued: AtomicU64::new(0),
    };
    let (cpu_before, before) = (cpu_of_process(), now());
    let duration = args.demand.duration.unwrap_or(DURATION);
    let (samples, interrupted) = load.run(threads, duration, verifier.as_ref(), &mut ear)?;
    let measured = Measured {
        ids: load.issued.into_inner(),
        threads: threads as u64,
        elapsed: before.elapsed(),
        cpu: cpu_of_process().saturating_sub(cpu_before),
        samples,
        ended_early: interrupted.is_some(),
    };
    Ok((measured.report(args, verifier.map(Verifier::finish)), interrupted))
}

/// Refuses what would not end in time.
fn check(args: &BenchArgs) -> Result<(), Failure> {
    let layout = &layout(args);
    let tick_ms = layout.tick_ms();
    if tick_ms > TICK_MS_MAX {
        return Err(Failure::usage(format_args!(
            "a tick of {tick_ms} ms is too long to measure: use a layout with at most {TICK_MS_MAX} ms"
        )));
    }
    let (batch, per_second) = (args.demand.batch, layout.ids_per_second());
    if batch > per_second {
        return Err(Failure::usage(format_args!(
            "a batch of {batch} takes over a second: the layout allows {per_second} IDs a second"
        )));
    }
    Ok(())
}

/// What was seen of a run.
struct Measured {
    ids: u64,
    threads: u64,
    elapsed: Duration,
    cpu: Duration,
    samples: Vec<Sample>,
    ended_early: bool,
}

impl Measured {
    #[expect(clippy::cast_precision_loss, reason = "a rate is not exact to 2^-53")]
    fn report(self, args: &BenchArgs, verified: Option<super::verify::Verified>) -> Report {
        let Self { ids, threads, elapsed, cpu, samples, ended_early } = self;
        let (seconds, cpu, batch) = (elapsed.as_secs_f64(), cpu.as_secs_f64(), args.demand.batch);
        let (layout, calls) = (&layout(args), ids / batch);
        let ids_per_second = ids as f64 / seconds;
        let planned = args.demand.duration.unwrap_or(DURATION);
        Report {
            frazil_bench: FORM,
            config: Config {
                target: "library".to_owned(),
                request: match clock(args) {
                    ClockArg::System => "system clock".to_owned(),
                    ClockArg::Ticker => "ticker clock".to_owned(),
                },
                node: None,
                version: Some(env!("CARGO_PKG_VERSION").to_owned()),
                layout: layout.to_string(),
                batch,
                scope: None,
                connections: None,
                threads,
                rate: None,
                duration_seconds: planned.as_secs_f64(),
                warmup_seconds: 0.0,
                build: Some(machine::build()),
                host: Some(machine::host()),
            },
            results: Results {
                seconds,
                ended_early,
                requests: calls,
                ids,
                requests_per_second: calls as f64 / seconds,
                ids_per_second,
                share_of_cap: Some(ids_per_second / layout.ids_per_second() as f64),
            },
            latency_us: None,
            schedule: None,
            errors: std::collections::BTreeMap::new(),
            target: None,
            generator: report::Generator {
                cpu_seconds: cpu,
                cores: cpu / seconds,
                cpu_ns_per_id: (ids > 0).then(|| cpu * 1e9 / ids as f64),
            },
            verify: verified.map(|verified| Verify::of(verified, threads, seconds)),
            samples,
            outage: None,
        }
    }
}

/// What the main thread listens to while the others issue.
struct Ear {
    runtime: Runtime,
    signals: Signals,
}

impl Ear {
    fn open() -> Result<Self, Failure> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| no_threads(&error))?;
        let signals = runtime.block_on(async { Signals::new() })?;
        Ok(Self { runtime, signals })
    }

    /// Listens for so long; why nothing more is to be issued, if something says so.
    fn listen(&mut self, endings: &mut mpsc::Receiver<()>, span: Duration) -> Option<Ending> {
        let Self { runtime, signals } = self;
        runtime.block_on(async {
            tokio::select! {
                biased;
                signal = signals.next() => Some(Ending::Interrupted(signal)),
                _ = endings.recv() => Some(Ending::Stuck),
                () = tokio::time::sleep(span) => None,
            }
        })
    }
}

/// Why a measurement ends before its time.
enum Ending {
    Interrupted(Signal),
    /// A thread cannot go on.
    Stuck,
}

/// What the threads of a measurement share.
struct Load<'a, C> {
    ids: &'a Generator<C>,
    batch: u32,
    stop: AtomicBool,
    issued: AtomicU64,
}

impl<C: Clock + Sync> Load<'_, C> {
    /// Issues on so many threads for so long; how many IDs there were in each second, and the signal
    /// that ended it early, if one did.
    fn run(
        &self,
        threads: usize,
        duration: Duration,
        verifier: Option<&Verifier>,
        ear: &mut Ear,
    ) -> Result<(Vec<Sample>, Option<Signal>), Failure> {
        // Held until all threads exist: those that run would slow the start of the others.
        let gate = Mutex::new(());
        thread::scope(|scope| {
            let (ended, mut endings) = mpsc::channel::<()>(1);
            let closed = gate.lock();
            let threads: io::Result<Vec<_>> = (0..threads)
                .map(|place| {
                    let (ended, gate) = (ended.clone(), &gate);
                    let verify = verifier.map(|verifier| verifier.sender(place));
                    thread::Builder::new().spawn_scoped(scope, move || {
                        drop(gate.lock());
                        let outcome = self.issue(verify);
                        // Nobody listens once the time is up, and one is enough.
                        let _ = ended.try_send(());
                        outcome
                    })
                })
                .collect();
            let mut seen = (Vec::new(), None);
            if threads.is_ok() {
                drop(closed);
                seen = self.wait(&mut endings, duration, ear);
            }
            // Relaxed: the threads look at it now and then, and publish nothing by it. If not all
            // of them could start, those that did see it as soon as the gate opens.
            self.stop.store(true, Ordering::Relaxed);
            let threads = threads.map_err(|error| no_threads(&error))?;
            threads
                .into_iter()
                .try_for_each(|thread| thread.join().expect("issuing does not panic"))?;
            Ok(seen)
        })
    }

    /// Waits until the time is up, a thread has ended or a signal comes, and shows how far the run is.
    #[expect(clippy::cast_precision_loss, reason = "a rate is not exact to 2^-53")]
    fn wait(
        &self,
        endings: &mut mpsc::Receiver<()>,
        duration: Duration,
        ear: &mut Ear,
    ) -> (Vec<Sample>, Option<Signal>) {
        let bar = progress::time(duration);
        let start = now();
        let (mut samples, mut interrupted) = (Vec::new(), None);
        let (mut since, mut before) = (Duration::ZERO, 0);
        while let Some(left) = duration.checked_sub(start.elapsed()) {
            let second_left = (since + SECOND).saturating_sub(start.elapsed());
            let span = left.min(REFRESH).min(second_left.max(Duration::from_millis(1)));
            if let Some(ending) = ear.listen(endings, span) {
                if let Ending::Interrupted(signal) = ending {
                    interrupted = Some(signal);
                }
                break;
            }
            // Relaxed: a number to look at.
            let issued = self.issued.load(Ordering::Relaxed);
            let elapsed = start.elapsed();
            if elapsed.saturating_sub(since) >= SECOND {
                samples.push(self.sample(issued - before, elapsed, elapsed - since));
                (since, before) = (elapsed, issued);
            }
            bar.set_position(u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX));
            bar.set_message(format!("{:.0} IDs/s", issued as f64 / elapsed.as_secs_f64()));
        }
        bar.finish_and_clear();
        (samples, interrupted)
    }

    fn issue(&self, mut verify: Option<Sender>) -> Result<(), NotReady> {
        let mut is_done = false;
        while !is_done {
            let mut calls = 0;
            while !is_done && calls < CALLS_BETWEEN_COUNTS {
                self.call(verify.as_mut())?;
                calls += 1;
                // Relaxed: see `run`.
                is_done = self.stop.load(Ordering::Relaxed);
            }
            // Relaxed: a counter.
            self.issued.fetch_add(calls * u64::from(self.batch), Ordering::Relaxed);
        }
        if let Some(verify) = &mut verify {
            verify.end_of_answer(None, None);
            verify.hand_over_blocking();
        }
        Ok(())
    }

    fn call(&self, verify: Option<&mut Sender>) -> Result<(), NotReady> {
        if self.batch == 1 {
            let id = std::hint::black_box(self.ids.next()?);
            if let Some(verify) = verify {
                // IDs that follow each other in one call or in several are the same to the check.
                verify.id(id.to_u64());
                if verify.is_full() {
                    verify.end_of_answer(None, None);
                    verify.hand_over_blocking();
                }
            }
            return Ok(());
        }
        let batch = std::hint::black_box(self.ids.batch(self.batch)?);
        if let Some(verify) = verify {
            batch.iter().for_each(|id| verify.id(id.to_u64()));
            verify.end_of_answer(None, Some(self.batch.into()));
            if verify.is_full() {
                verify.hand_over_blocking();
            }
        }
        Ok(())
    }

    #[expect(clippy::cast_precision_loss, reason = "a rate is not exact to 2^-53")]
    fn sample(&self, ids: u64, at: Duration, span: Duration) -> Sample {
        Sample {
            at_seconds: at.as_secs_f64(),
            seconds: span.as_secs_f64(),
            requests: ids / u64::from(self.batch),
            ids,
            errors: 0,
            ids_per_second: ids as f64 / span.as_secs_f64(),
            p50_us: None,
            p99_us: None,
        }
    }
}
