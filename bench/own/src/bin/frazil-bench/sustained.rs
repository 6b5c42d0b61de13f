//! The rate that one caller can keep up at the default layout's cap, and what it costs.

use std::error::Error;
use std::time::Duration;

use frazil_bench::{Case, Pace, Run, run};
use frazil_id::{Clock, Generator, Layout, Options, TickerClock};

use crate::bar::{Bar, Bound};

const LAYOUT: Layout = Layout::FRAZIL;

pub(crate) fn measure(pace: Pace) -> Result<Vec<Bar>, Box<dyn Error>> {
    let time = pace.pick(Duration::from_secs(5), Duration::from_secs(1));
    let exact = one_lane(&Generator::system(&LAYOUT, 1)?, time);
    let clock = TickerClock::start(&LAYOUT)?;
    let ticking = one_lane(&Generator::new(&LAYOUT, 2, clock, Options::default())?, time);
    Ok([("exact", exact), ("ticker", ticking)].into_iter().flat_map(bars).collect())
}

/// A caller who wants the next Id at once, always.
fn one_lane<C: Clock + Sync>(ids: &Generator<C>, time: Duration) -> Run {
    run(&Case::new("next", || ids.next().expect("the clock does not step")), 1, time)
}

fn bars((clock, run): (&str, Run)) -> [Bar; 2] {
    let cap = LAYOUT.ids_per_second();
    [
        Bar {
            name: format!("sustained next, {clock} clock, of {cap} Ids a second"),
            measured: run.ids_per_second() / cap as f64 * 100.0,
            bound: Bound::AtLeast(99.9),
            unit: "%",
        },
        Bar {
            name: format!("sustained next, {clock} clock, CPU of all its threads"),
            measured: run.cores_used(),
            bound: Bound::AtMost(0.3),
            unit: "cores",
        },
    ]
}
