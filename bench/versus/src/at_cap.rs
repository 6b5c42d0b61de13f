//! Table B: at the cap of the usual layout, where what counts is how a generator waits.

use std::error::Error;
use std::io::Write;
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use ferroid::generator::AtomicSnowflakeGenerator;
use ferroid::id::SnowflakeTwitterId;
use ferroid::time::{MonotonicClock, TWITTER_EPOCH};
use frazil_bench::{Case, Pace, Run, Table, machine, run, thread_counts};
use frazil_id::{Clock, Generator, Layout, Options, TickerClock};
use snowflake::SnowflakeIdGenerator;
use sonyflake::Sonyflake;

const LAYOUT: Layout = Layout::FRAZIL;

pub(crate) fn report(out: &mut impl Write, pace: Pace) -> Result<(), Box<dyn Error>> {
    let time = pace.pick(Duration::from_secs(2), Duration::from_millis(300));
    writeln!(out, "Table B, at the cap: 12 bits of sequence a millisecond, except for sonyflake")?;
    writeln!(out, "{}\n", machine())?;
    let heading = ["generator", "threads", "Ids/s", "of its cap", "CPU ns", "cores used"];
    let mut table = Table::new(&heading);
    for threads in thread_counts() {
        measure(threads, time, &mut table)?;
    }
    writeln!(out, "{table}")?;
    writeln!(
        out,
        "CPU is that of the process: ferroid's clock thread, which never ends, is in it"
    )?;
    Ok(())
}

fn measure(threads: usize, time: Duration, table: &mut Table) -> Result<(), Box<dyn Error>> {
    let cap = LAYOUT.ids_per_second();
    let mut add =
        |case: &Case<'_>, cap| row(table, threads, cap, case.name(), run(case, threads, time));

    let snowflaked = snowflaked::sync::Generator::new(1);
    add(&Case::new("snowflaked, sync (spins)", || snowflaked.generate::<u64>()), cap);

    let locked = Mutex::new(SnowflakeIdGenerator::new(1, 1));
    add(&rs_snowflake(threads, &locked), cap);

    let clock = MonotonicClock::<1>::with_epoch(TWITTER_EPOCH);
    let ferroid = AtomicSnowflakeGenerator::<SnowflakeTwitterId, _>::new(1, clock);
    let next = || ferroid.next_id(|_| thread::yield_now());
    add(&Case::new("ferroid, atomic (yields)", next), cap);

    let sonyflake = Sonyflake::builder().machine_id(&|| Ok(1)).finalize()?;
    let next = || sonyflake.next_id().expect("its time is not over");
    let name = "sonyflake (sleeps; 8 bits a 10 ms)";
    add(&Case::new(name, next), Layout::SONYFLAKE.ids_per_second());

    let exact = Generator::system(&LAYOUT, 1)?;
    add(&frazil("frazil, SystemClock (sleeps)", &exact), cap);

    let clock = TickerClock::start(&LAYOUT)?;
    let ticking = Generator::new(&LAYOUT, 2, clock, Options::default())?;
    add(&frazil("frazil, TickerClock (sleeps)", &ticking), cap);
    Ok(())
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

fn frazil<'a, C: Clock + Sync>(name: &str, ids: &'a Generator<C>) -> Case<'a> {
    Case::new(name, || ids.next().expect("the clock does not step"))
}

fn row(table: &mut Table, threads: usize, cap: u64, name: &str, run: Run) {
    table.row([
        name.into(),
        threads.to_string(),
        format!("{:.0}", run.ids_per_second()),
        format!("{:.2} %", run.ids_per_second() / cap as f64 * 100.0),
        format!("{:.1}", run.cpu_ns_per_id()),
        format!("{:.2}", run.cores_used()),
    ]);
}
