//! The rate that one caller can keep up at the default layout's cap, and what it costs.

use std::error::Error;
use std::time::Duration;

use frazil_bench::{Case, Pace, Run, run, sleeper};
use frazil_id::{Clock, Generator, Layout, NotReady, Options, SystemClock, TickerClock};

use crate::bar::{Bar, Bound};

const LAYOUT: Layout = Layout::FRAZIL;
/// How far a lane of a server runs ahead of time. It makes up for threads that wake late.
const AHEAD: Duration = Duration::from_millis(10);

/// What was measured.
pub(crate) struct Sustained {
    exact: Run,
    ticking: Run,
    ahead: Run,
    asleep: Run,
}

/// Callers who want the next ID at once, always, and beside them one who only sleeps. They take
/// turns, so that a machine which wakes its threads late does so to all of them.
pub(crate) fn measure(pace: Pace) -> Result<Sustained, Box<dyn Error>> {
    let exact = &Generator::system(&LAYOUT, 1)?;
    let clock = TickerClock::start(&LAYOUT)?;
    let ticking = &Generator::new(&LAYOUT, 2, clock, Options::default())?;
    let options = Options::default().with_max_ahead(AHEAD);
    let ahead = &Generator::new(&LAYOUT, 3, SystemClock::new(&LAYOUT), options)?;
    let cases = [
        Case::new("exact", || exact.next().expect("the clock does not step")),
        Case::new("ticker", || ticking.next().expect("the clock does not step")),
        Case::with_state("ahead", 1, || use_up(ahead), |_| ahead.next().expect("no step")),
        sleeper(),
    ];
    let turns = pace.pick(5, 1);
    let turn = pace.pick(Duration::from_secs(1), Duration::from_millis(600));
    let runs: Vec<_> =
        (0..turns).map(|_| cases.each_ref().map(|case| run(case, 1, turn))).collect();
    let total = |at: usize| runs.iter().map(|runs| runs[at]).sum();
    Ok(Sustained { exact: total(0), ticking: total(1), ahead: total(2), asleep: total(3) })
}

/// Takes what may run ahead, so that a run does not begin with IDs that time has not paid for.
fn use_up<C: Clock>(ids: &Generator<C>) -> Option<NotReady> {
    std::iter::from_fn(|| Some(ids.try_next())).find_map(Result::err)
}

impl Sustained {
    pub(crate) fn bars(&self) -> Vec<Bar> {
        let ahead = format!("exact clock, up to {} ms ahead", AHEAD.as_millis());
        [("exact clock", self.exact), ("ticker clock", self.ticking), (&ahead, self.ahead)]
            .into_iter()
            .flat_map(bars)
            .collect()
    }

    pub(crate) fn control(&self) -> String {
        let percent = percent_of_cap(self.asleep);
        format!("control: a thread that only sleeps to each next tick meets {percent:.3} % of them")
    }
}

fn bars((how, run): (&str, Run)) -> [Bar; 2] {
    let cap = LAYOUT.ids_per_second();
    [
        Bar {
            name: format!("sustained next, {how}, of {cap} IDs a second"),
            measured: percent_of_cap(run),
            bound: Bound::AtLeast(99.9),
            unit: "%",
        },
        Bar {
            name: format!("sustained next, {how}, CPU of all its threads"),
            measured: run.cores_used(),
            bound: Bound::AtMost(0.3),
            unit: "cores",
        },
    ]
}

fn percent_of_cap(run: Run) -> f64 {
    run.ids_per_second() / LAYOUT.ids_per_second() as f64 * 100.0
}
