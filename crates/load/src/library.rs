//! Measuring the library in this process.

use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use frazil_id::{Clock, Generator, Layout, NotReady, Options, SystemClock, TickerClock};
use tokio::runtime::Runtime;
use tokio::sync::mpsc;

use crate::error::Error;
use crate::machine;
use crate::moment::{cpu_of_process, now};
use crate::observer::Observer;
use crate::plan::cores;
use crate::report::{self, Config, FORM, Report, Results, Sample, Verify};
use crate::verify::{Sender, Verified, Verifier};

/// Calls after which a thread adds to the count of all: the threads share that word.
const CALLS_BETWEEN_COUNTS: u64 = 1024;
/// Ticks longer than this do not end a call in time.
const TICK_MS_MAX: u32 = 1000;
/// How often the display changes.
const REFRESH: Duration = Duration::from_millis(100);
/// What a sample covers.
const SECOND: Duration = Duration::from_secs(1);

/// A measurement of the library in this process.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Library {
    /// The layout of the IDs.
    pub layout: Layout,
    /// Where time comes from.
    pub clock: LibraryClock,
    /// Threads that share one generator.
    pub threads: usize,
    /// IDs in one call.
    pub batch: u32,
    /// How long is measured.
    pub duration: Duration,
    /// Whether all IDs are proved to be distinct and in order.
    pub verify: bool,
}

/// Where the library's time comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LibraryClock {
    /// The system's clock is read on every call.
    System,
    /// A tick is read that a thread publishes.
    Ticker,
}

impl Default for Library {
    fn default() -> Self {
        let (layout, clock) = (Layout::FRAZIL, LibraryClock::System);
        let duration = Duration::from_secs(3);
        Self { layout, clock, threads: 1, batch: 1, duration, verify: false }
    }
}

/// Measures the library. The runtime is where the observer is listened to while others issue.
///
/// # Errors
///
/// It would not end in time, or there are not enough threads.
pub fn measure_library(
    library: &Library,
    runtime: &Runtime,
    observer: &mut impl Observer,
) -> Result<Report, Error> {
    match library.clock {
        LibraryClock::System => {
            let clock = SystemClock::new(&library.layout);
            measure_by(library, clock, runtime, observer)
        }
        LibraryClock::Ticker => {
            let clock = TickerClock::start(&library.layout).map_err(|error| {
                Error::unavailable(format_args!("no thread for the clock: {error}"))
            })?;
            measure_by(library, clock, runtime, observer)
        }
    }
}

fn measure_by<C: Clock + Sync>(
    library: &Library,
    clock: C,
    runtime: &Runtime,
    observer: &mut impl Observer,
) -> Result<Report, Error> {
    check(library)?;
    let Library { layout, batch, duration, .. } = *library;
    let threads = if library.threads == 0 { cores() } else { library.threads };
    let ids = Generator::new(&layout, 0, clock, Options::default()).map_err(Error::usage)?;
    ids.next().map_err(not_ready)?;
    let verifier = library.verify.then(|| Verifier::start(&layout, false, threads)).transpose();
    let verifier = verifier.map_err(|error| Error::no_threads(&error))?;
    let load = Load { ids: &ids, batch, stop: AtomicBool::new(false), issued: AtomicU64::new(0) };
    let (cpu_before, before) = (cpu_of_process(), now());
    observer.begin();
    let seen = load.run(threads, duration, verifier.as_ref(), runtime, observer);
    observer.end();
    let (samples, ended_early) = seen?;
    let measured = Measured {
        ids: load.issued.into_inner(),
        threads: threads as u64,
        elapsed: before.elapsed(),
        cpu: cpu_of_process().saturating_sub(cpu_before),
        samples,
        ended_early,
    };
    Ok(measured.report(library, verifier.map(Verifier::finish)))
}

/// Refuses what would not end in time.
fn check(library: &Library) -> Result<(), Error> {
    let layout = &library.layout;
    let tick_ms = layout.tick_ms();
    if tick_ms > TICK_MS_MAX {
        return Err(Error::usage(format_args!(
            "a tick of {tick_ms} ms is too long to measure: use a layout with at most {TICK_MS_MAX} ms"
        )));
    }
    let (batch, per_second) = (u64::from(library.batch), layout.ids_per_second());
    if batch > per_second {
        return Err(Error::usage(format_args!(
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
    fn report(self, library: &Library, verified: Option<Verified>) -> Report {
        let Self { ids, threads, elapsed, cpu, samples, ended_early } = self;
        let (seconds, cpu) = (elapsed.as_secs_f64(), cpu.as_secs_f64());
        let (layout, batch) = (&library.layout, u64::from(library.batch));
        let calls = ids / batch;
        let ids_per_second = ids as f64 / seconds;
        Report {
            frazil_bench: FORM,
            config: Config {
                target: "library".to_owned(),
                request: match library.clock {
                    LibraryClock::System => "system clock".to_owned(),
                    LibraryClock::Ticker => "ticker clock".to_owned(),
                },
                node: None,
                version: Some(env!("CARGO_PKG_VERSION").to_owned()),
                layout: layout.to_string(),
                batch,
                scope: None,
                connections: None,
                threads,
                rate: None,
                duration_seconds: library.duration.as_secs_f64(),
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

/// What the threads of a measurement share.
struct Load<'a, C> {
    ids: &'a Generator<C>,
    batch: u32,
    stop: AtomicBool,
    issued: AtomicU64,
}

impl<C: Clock + Sync> Load<'_, C> {
    /// Issues on so many threads for so long; how many IDs there were in each second, and whether
    /// somebody ended it early.
    fn run(
        &self,
        threads: usize,
        duration: Duration,
        verifier: Option<&Verifier>,
        runtime: &Runtime,
        observer: &mut impl Observer,
    ) -> Result<(Vec<Sample>, bool), Error> {
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
            let mut seen = (Vec::new(), false);
            if threads.is_ok() {
                drop(closed);
                let wait = self.wait(&mut endings, duration, observer);
                seen = runtime.block_on(wait);
            }
            // Relaxed: the threads look at it now and then, and publish nothing by it. If not all
            // of them could start, those that did see it as soon as the gate opens.
            self.stop.store(true, Ordering::Relaxed);
            let threads = threads.map_err(|error| Error::no_threads(&error))?;
            threads
                .into_iter()
                .try_for_each(|thread| thread.join().expect("issuing does not panic"))
                .map_err(not_ready)?;
            Ok(seen)
        })
    }

    /// Waits until the time is up, a thread has ended or somebody ends it, and shows how far it is.
    async fn wait(
        &self,
        endings: &mut mpsc::Receiver<()>,
        duration: Duration,
        observer: &mut impl Observer,
    ) -> (Vec<Sample>, bool) {
        let start = now();
        let (mut samples, mut is_interrupted) = (Vec::new(), false);
        let (mut since, mut before) = (Duration::ZERO, 0);
        while let Some(left) = duration.checked_sub(start.elapsed()) {
            let second_left = (since + SECOND).saturating_sub(start.elapsed());
            let span = left.min(REFRESH).min(second_left.max(Duration::from_millis(1)));
            tokio::select! {
                biased;
                () = observer.interrupted() => {
                    is_interrupted = true;
                    break;
                }
                _ = endings.recv() => break,
                () = tokio::time::sleep(span) => {}
            }
            // Relaxed: a number to look at.
            let issued = self.issued.load(Ordering::Relaxed);
            let elapsed = start.elapsed();
            if elapsed.saturating_sub(since) >= SECOND {
                samples.push(self.sample(issued - before, elapsed, elapsed - since));
                (since, before) = (elapsed, issued);
            }
            observer.show_issued(elapsed, issued);
        }
        (samples, is_interrupted)
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

/// A generator that cannot issue, which is what a clock that went back makes of one.
fn not_ready(error: NotReady) -> Error {
    Error::Refused(error.to_string())
}
