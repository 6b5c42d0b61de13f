//! `next` of the client's pool when it is warm, beside what no pool can be faster than and beside
//! the pool that comes to mind first.

use std::cell::Cell;
use std::collections::VecDeque;
use std::hint::black_box;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use frazil_bench::{Table, verdict};
use frazil_client::blocking::Client;
use rustix::thread::{CpuSet, sched_setaffinity};

use crate::process::Process;
use crate::{MeasurementPlan, Outcome};

/// IDs taken in a round by all threads: fewer than half a buffer, so that no fetch falls into it.
const TAKEN: usize = 40_000;
/// What a buffer must hold for that.
const POOLED: u64 = 90_000;

/// Bare additions that a `next` may cost.
const ADDITIONS_MAX: f64 = 5.0;
/// What two threads must gain of what they gain on counters of their own.
const GAIN_MIN: f64 = 0.9;

/// What is compared: how it is filled before a round, and how one is taken.
struct Subject<'a> {
    name: &'static str,
    fill: &'a dyn Fn() -> Outcome,
    take: &'a (dyn Fn() + Sync),
}

pub(crate) fn report(effort: MeasurementPlan) -> Outcome {
    thread_local! { static OWN: Cell<u64> = const { Cell::new(0) }; }
    let node = Process::start(&["node"])?;
    let client = Client::connect([format!("http://{}", node.addresses[0])])?;
    let counter = AtomicU64::new(0);
    let queue = Mutex::new(VecDeque::new());
    let nothing = || Ok(());
    let fill_queue = || -> Outcome {
        *queue.lock().map_err(|_| "poisoned")? = (0..POOLED).collect();
        Ok(())
    };
    let fill_client = || fill(&client);
    let subjects = [
        Subject {
            name: "a bare atomic counter",
            fill: &nothing,
            take: &|| {
                black_box(counter.fetch_add(1, Ordering::Relaxed));
            },
        },
        Subject {
            name: "bare counters, one for each thread",
            fill: &nothing,
            take: &|| OWN.with(|own| own.set(black_box(own.get() + 1))),
        },
        Subject {
            name: "a queue behind a lock",
            fill: &fill_queue,
            take: &|| {
                black_box(queue.lock().ok().and_then(|mut queue| queue.pop_front()));
            },
        },
        Subject {
            name: "frazil-client",
            fill: &fill_client,
            take: &|| {
                black_box(client.next().ok());
            },
        },
    ];
    let measured = quartiles_ns(effort.rounds * 10, &subjects)?;
    let mut table = Table::new(&["next of a warm pool, ns", "1 thread", "2 threads", "gain"]);
    for (subject, [one, two]) in subjects.iter().zip(&measured) {
        let gain = format!("{:.2}", gain([*one, *two]));
        table.row([subject.name.to_owned(), format!("{one:.1}"), format!("{two:.1}"), gain]);
    }
    println!("{table}");
    let [bare, own, _, pooled] = measured;
    let additions = pooled[0] / bare[0];
    let kept = gain(pooled) / gain(own);
    let mut bars = Table::new(&["next of a warm pool", "ratio", "bar", ""]);
    bars.row([
        "beside a bare atomic addition, 1 thread".into(),
        format!("{additions:.2}"),
        format!("at most {ADDITIONS_MAX}"),
        verdict(additions <= ADDITIONS_MAX).into(),
    ]);
    bars.row([
        "gain of 2 threads beside that of counters of their own".into(),
        format!("{kept:.2}"),
        format!("at least {GAIN_MIN}"),
        verdict(kept >= GAIN_MIN).into(),
    ]);
    println!("{bars}");
    Ok(())
}

/// How many times as many two threads take in a time as one does.
fn gain([one, two]: [f64; 2]) -> f64 {
    2.0 * one / two
}

/// The lower quartiles of some rounds with one thread and with two: nanoseconds for each ID of a
/// thread. All subjects are measured in each round, and what else the machine does makes rounds only
/// longer, so that the short ones are the ones to compare.
fn quartiles_ns<const N: usize>(
    rounds: usize,
    subjects: &[Subject<'_>; N],
) -> Result<[[f64; 2]; N], Box<dyn std::error::Error>> {
    let mut all = subjects.each_ref().map(|_| [Vec::new(), Vec::new()]);
    for _ in 0..rounds {
        for (subject, laps) in subjects.iter().zip(&mut all) {
            for (threads, laps) in [1, 2].into_iter().zip(laps) {
                (subject.fill)()?;
                let lap = round(threads, subject.take).as_secs_f64();
                laps.push(lap * 1e9 / (TAKEN / threads) as f64);
            }
        }
    }
    Ok(all.map(|laps| {
        laps.map(|mut laps| {
            laps.sort_by(f64::total_cmp);
            laps[laps.len() / 4]
        })
    }))
}

fn round(threads: usize, take: &(dyn Fn() + Sync)) -> Duration {
    let missing = AtomicUsize::new(threads);
    let lap = &|core: usize| {
        // Threads that take turns on one core are no rivals. Where it cannot be had, the ratios are of
        // whatever the system does.
        let mut own = CpuSet::new();
        own.set(core);
        let _ = sched_setaffinity(None, &own);
        // All are running when the first begins: one that is only being woken is no rival.
        missing.fetch_sub(1, Ordering::SeqCst);
        while missing.load(Ordering::SeqCst) > 0 {
            std::hint::spin_loop();
        }
        let began = now();
        for _ in 0..TAKEN / threads {
            take();
        }
        began.elapsed()
    };
    thread::scope(|scope| {
        let laps: Vec<_> = (0..threads).map(|core| scope.spawn(move || lap(core))).collect();
        laps.into_iter().filter_map(|lap| lap.join().ok()).max().unwrap_or_default()
    })
}

/// Uses up what is there, and waits for a buffer that lasts for a round.
fn fill(client: &Client) -> Outcome {
    loop {
        let waits = client.stats().waits;
        while client.stats().waits == waits {
            for _ in 0..1000 {
                client.next()?;
            }
        }
        if client.stats().pooled >= POOLED {
            return Ok(());
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the stop watch")]
fn now() -> Instant {
    Instant::now()
}
