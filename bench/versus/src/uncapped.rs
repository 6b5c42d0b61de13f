//! Table A: a layout whose sequence caps nobody, like clocks beside like.

use std::error::Error;
use std::hint;
use std::io::{self, Write};
use std::thread;
use std::time::Duration;

use ferroid::generator::AtomicSnowflakeGenerator;
use ferroid::time::MonotonicClock;
use frazil_bench::{Comparison, Pace, Plan, Table, compare, thread_counts, verdict, wide_layout};
use frazil_id::{Generator, Layout, Options, TickerClock};

use crate::contender::{Contender, HAS_FAST_RNG, UUID};
use crate::genuine;
use crate::real_time::RealTime;

/// As its documentation shows it. A yield is a long pause, in which the faster thread has the
/// generator for itself.
const FERROID: &str = "ferroid, atomic, yields to the faster";
/// As its own benchmarks do it.
const FERROID_SPINS: &str = "ferroid, atomic, spins";
const FRAZIL: &str = "frazil";

pub(crate) fn report(out: &mut impl Write, pace: Pace) -> Result<(), Box<dyn Error>> {
    let layout = wide_layout();
    let plan = pace.pick(
        Plan { rounds: 31, round: Duration::from_millis(40) },
        Plan { rounds: 3, round: Duration::from_millis(20) },
    );
    // What the feature does not change is measured by the build without it.
    if !HAS_FAST_RNG {
        report_tickers(out, &layout, plan)?;
    }
    report_exact(out, &layout, plan)?;
    writeln!(out, "checked: the IDs of each contender are distinct, and their time is real\n")?;
    Ok(())
}

fn report_tickers(out: &mut impl Write, layout: &Layout, plan: Plan) -> Result<(), Box<dyn Error>> {
    let epoch = Duration::from_millis(layout.epoch_ms());
    let theirs = AtomicSnowflakeGenerator::new(0, MonotonicClock::<1>::with_epoch(epoch));
    let clock = TickerClock::start(layout)?;
    let ours = Generator::new(layout, 0, clock, Options::default())?;
    let contenders = [
        Contender::ferroid(FERROID, &theirs, layout.epoch_ms(), thread::yield_now),
        Contender::ferroid(FERROID_SPINS, &theirs, layout.epoch_ms(), hint::spin_loop),
        Contender::frazil(FRAZIL, &ours),
    ];
    let comparisons = report_group(out, "ticker clocks", &contenders, plan)?;
    writeln!(out, "{}", bars(&comparisons))?;
    Ok(())
}

fn bars(comparisons: &[Comparison]) -> Table {
    let mut table = Table::new(&["frazil's time / time of", "threads", "ratio", "bar is", ""]);
    for comparison in comparisons {
        for theirs in [FERROID, FERROID_SPINS] {
            let ratio = comparison.median_ns(FRAZIL) / comparison.median_ns(theirs);
            let holds = verdict(ratio <= 1.0);
            let known =
                if comparison.ran_in_parallel() { holds } else { "unknown: cores were busy" };
            table.row([
                theirs.into(),
                comparison.threads().to_string(),
                format!("{ratio:.2}"),
                "at most 1".into(),
                known.into(),
            ]);
        }
    }
    table
}

fn report_exact(out: &mut impl Write, layout: &Layout, plan: Plan) -> Result<(), Box<dyn Error>> {
    let theirs = AtomicSnowflakeGenerator::new(0, RealTime { epoch_ms: layout.epoch_ms() });
    let ours = Generator::system(layout, 0)?;
    let contenders = [
        Contender::ferroid(FERROID, &theirs, layout.epoch_ms(), thread::yield_now),
        Contender::ferroid(FERROID_SPINS, &theirs, layout.epoch_ms(), hint::spin_loop),
        Contender::frazil(FRAZIL, &ours),
        Contender::uuid_v7(),
    ];
    let comparisons = report_group(out, "exact clocks", &contenders, plan)?;
    writeln!(out, "{}", beside_uuid(&comparisons))?;
    Ok(())
}

fn beside_uuid(comparisons: &[Comparison]) -> Table {
    let mut table = Table::new(&["frazil's time / time of", "threads", "ratio"]);
    for comparison in comparisons {
        let ratio = comparison.median_ns(FRAZIL) / comparison.median_ns(UUID);
        table.row([UUID.into(), comparison.threads().to_string(), format!("{ratio:.2}")]);
    }
    table
}

/// Measures and prints a group, then looks at the IDs that its contenders issue.
fn report_group(
    out: &mut impl Write,
    title: &str,
    contenders: &[Contender<'_>],
    plan: Plan,
) -> io::Result<Vec<Comparison>> {
    let cases: Vec<_> = contenders.iter().map(|contender| &contender.case).collect();
    let comparisons: Vec<_> =
        thread_counts().into_iter().map(|threads| compare(&cases, threads, plan)).collect();
    writeln!(out, "{}", Comparison::table(title, &comparisons, FERROID))?;
    contenders.iter().for_each(genuine::verify);
    Ok(comparisons)
}
