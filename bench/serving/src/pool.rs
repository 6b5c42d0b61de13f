//! `next` of the client's pool when it is warm, beside what no pool can be faster than and beside
//! the pool that comes to mind first.

use std::collections::VecDeque;
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Barrier, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use frazil_bench::Table;
use frazil_client::blocking::Client;

use crate::process::Process;
use crate::{Effort, Outcome};

/// Ids taken in a round by all threads: fewer than half a buffer, so that no fetch falls into it.
const TAKEN: usize = 40_000;
/// What a buffer must hold for that.
const POOLED: u64 = 90_000;

pub(crate) fn report(effort: Effort) -> Outcome {
    let node = Process::start(&["node", "1"])?;
    let client = Client::connect([format!("http://{}", node.addresses[0])])?;
    let rounds = effort.rounds * 10;
    let mut table = Table::new(&["next of a warm pool, ns", "1 thread", "2 threads"]);
    let counter = AtomicU64::new(0);
    let queue = Mutex::new(VecDeque::new());
    let fill_queue = || -> Outcome {
        *queue.lock().map_err(|_| "poisoned")? = (0..POOLED).collect();
        Ok(())
    };
    let atomic = || {
        black_box(counter.fetch_add(1, Ordering::Relaxed));
    };
    let locked = || {
        black_box(queue.lock().ok().and_then(|mut queue| queue.pop_front()));
    };
    let pooled = || {
        black_box(client.next().ok());
    };
    let both = |fill: &dyn Fn() -> Outcome, take: &(dyn Fn() + Sync)| {
        Ok::<_, Box<dyn std::error::Error>>(
            [1, 2].map(|threads| median_ns(rounds, threads, fill, take)),
        )
    };
    for (name, [one, two]) in [
        ("a bare atomic counter", both(&|| Ok(()), &atomic)?),
        ("a queue behind a lock", both(&fill_queue, &locked)?),
        ("frazil-client", both(&|| fill(&client), &pooled)?),
    ] {
        table.row([name.to_owned(), format!("{:.1}", one?), format!("{:.1}", two?)]);
    }
    println!("{table}");
    Ok(())
}

/// The median of some rounds: nanoseconds for each Id of a thread.
fn median_ns(
    rounds: usize,
    threads: usize,
    fill: &dyn Fn() -> Outcome,
    take: &(dyn Fn() + Sync),
) -> Result<f64, Box<dyn std::error::Error>> {
    let mut all = Vec::with_capacity(rounds);
    for _ in 0..rounds {
        fill()?;
        all.push(round(threads, take));
    }
    all.sort_unstable();
    Ok(all[all.len() / 2].as_secs_f64() * 1e9 / (TAKEN / threads) as f64)
}

fn round(threads: usize, take: &(dyn Fn() + Sync)) -> Duration {
    let barrier = Barrier::new(threads);
    let lap = || {
        barrier.wait();
        let began = now();
        for _ in 0..TAKEN / threads {
            take();
        }
        began.elapsed()
    };
    thread::scope(|scope| {
        let laps: Vec<_> = (0..threads).map(|_| scope.spawn(lap)).collect();
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
