//! Table B: at the cap of the usual layout, where what counts is how a generator waits.

use std::error::Error;
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use ferroid::generator::AtomicSnowflakeGenerator;
use ferroid::id::SnowflakeTwitterId;
use ferroid::time::{MonotonicClock, TWITTER_EPOCH};
use frazil_bench::{Case, Pace, Table, run, sleeper, thread_counts};
use frazil_id::{Clock, Generator, Layout, Options, TickerClock};
use snowflake::SnowflakeIdGenerator;
use sonyflake::Sonyflake;

const CAP: u64 = Layout::FRAZIL.ids_per_second();
const SONYFLAKE_CAP: u64 = Layout::SONYFLAKE.ids_per_second();

/// Each generator in turn. The CPU time is that of the whole process, and ferroid's clock has a
/// thread that never ends, so ferroid comes last.
pub(crate) fn measure(pace: Pace) -> Result<Table, Box<dyn Error>> {
    let mut rows = Rows {
        time: pace.pick(Duration::from_secs(2), Duration::from_millis(300)),
        table: Table::new(&["generator", "threads", "IDs/s", "of its cap", "CPU ns", "cores used"]),
    };
    rows.add(&sleeper(), 1, CAP);
    let exact = Generator::system(&Layout::FRAZIL, 1)?;
    rows.add_all(&frazil("frazil, SystemClock (sleeps)", &exact), CAP);
    let clock = TickerClock::start(&Layout::FRAZIL)?;
    let ticking = Generator::new(&Layout::FRAZIL, 2, clock, Options::default())?;
    rows.add_all(&frazil("frazil, TickerClock (sleeps)", &ticking), CAP);
    // Ends its thread.
    drop(ticking);

    let snowflaked = snowflaked::sync::Generator::new(1);
    rows.add_all(&Case::new("snowflaked, sync (spins)", || snowflaked.generate::<u64>()), CAP);
    let locked = Mutex::new(SnowflakeIdGenerator::new(1, 1));
    for threads in thread_counts() {
        rows.add(&rs_snowflake(threads, &locked), threads, CAP);
    }
    let sonyflake = Sonyflake::builder().machine_id(&|| Ok(1)).finalize()?;
    let next = || sonyflake.next_id().expect("its time is not over");
    rows.add_all(&Case::new("sonyflake (sleeps), 256 in 10 ms", next), SONYFLAKE_CAP);

    let clock = MonotonicClock::<1>::with_epoch(TWITTER_EPOCH);
    let ferroid = AtomicSnowflakeGenerator::<SnowflakeTwitterId, _>::new(1, clock);
    let next = || ferroid.next_id(|_| thread::yield_now());
    rows.add_all(&Case::new("ferroid, atomic (yields)", next), CAP);
    Ok(rows.table)
}

fn frazil<'a, C: Clock + Sync>(name: &str, ids: &'a Generator<C>) -> Case<'a> {
    Case::new(name, || ids.next().expect("the clock does not step"))
}

/// A thread that is alone needs no lock, so it is not charged for one.
fn rs_snowflake(threads: usize, locked: &Mutex<SnowflakeIdGenerator>) -> Case<'_> {
    if threads == 1 {
        let own = || SnowflakeIdGenerator::new(1, 1);
        Case::with_state("rs-snowflake (spins)", 1, own, SnowflakeIdGenerator::real_time_generate)
    } else {
        Case::new("rs-snowflake in a Mutex (spins)", || {
            locked.lock().expect("no holder panics").real_time_generate()
        })
    }
}

struct Rows {
    time: Duration,
    table: Table,
}

impl Rows {
    fn add_all(&mut self, case: &Case<'_>, cap: u64) {
        for threads in thread_counts() {
            self.add(case, threads, cap);
        }
    }

    fn add(&mut self, case: &Case<'_>, threads: usize, cap: u64) {
        let run = run(case, threads, self.time);
        self.table.row([
            case.name().into(),
            threads.to_string(),
            format!("{:.0}", run.ids_per_second()),
            format!("{:.2} %", run.ids_per_second() / cap as f64 * 100.0),
            format!("{:.1}", run.cpu_ns_per_id()),
            format!("{:.2}", run.cores_used()),
        ]);
    }
}
