//! Nanoseconds: single IDs, batches and text, with a layout that does not cap.

use std::error::Error;
use std::hint::black_box;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use frazil_bench::{Case, Comparison, Pace, Plan, Table, compare, cores, wide_layout};
use frazil_id::{Clock, Format, Generator, Id, Options, TickerClock};

use crate::bar::{Bar, Bound};

const CLOCK_READ: &str = "bare read of the real-time clock";
const EXACT_NEXT: &str = "next, exact clock";
const TICKER_NEXT: &str = "next, ticker clock";
const BATCH_BAR: u32 = 4096;

/// What was measured.
pub(crate) struct Speed {
    /// Everything on one thread, then the single IDs on all cores.
    comparisons: [Comparison; 2],
}

pub(crate) fn measure(pace: Pace) -> Result<Speed, Box<dyn Error>> {
    let layout = wide_layout();
    let exact = &Generator::system(&layout, 0)?;
    let clock = TickerClock::start(&layout)?;
    let ticking = &Generator::new(&layout, 1, clock, Options::default())?;
    // A generator without a floor starts with the next tick, which `try_batch` does not wait for.
    let id = exact.next()?;
    ticking.next()?;
    let text: &str = &id.text(Format::Decimal);

    let singles = [
        Case::new(CLOCK_READ, real_time),
        Case::new(EXACT_NEXT, || exact.next().expect("the clock does not step")),
        Case::new(TICKER_NEXT, || ticking.next().expect("the clock does not step")),
    ];
    let batches = [1, 16, 256].map(|n| try_batch(ticking, n)).into_iter();
    let batches = batches.chain([1, 16, 256, BATCH_BAR].map(|n| batch(ticking, n)));
    let texts = [
        Case::new("ID to decimal text", || black_box(id).text(Format::Decimal)),
        Case::new("decimal text to ID", || black_box(text).parse::<Id>()),
    ];
    let others: Vec<_> = batches.chain(texts).collect();

    let plan = pace.pick(
        Plan { rounds: 21, round: Duration::from_millis(40) },
        Plan { rounds: 5, round: Duration::from_millis(20) },
    );
    let singles: Vec<_> = singles.iter().collect();
    let everything: Vec<_> = singles.iter().copied().chain(&others).collect();
    Ok(Speed { comparisons: [compare(&everything, 1, plan), compare(&singles, cores(), plan)] })
}

#[expect(clippy::disallowed_methods, reason = "the read itself is what is measured")]
fn real_time() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

fn try_batch<C: Clock + Sync>(ids: &Generator<C>, n: u32) -> Case<'_> {
    Case::with_state(
        batch_name("try_batch", n),
        n,
        move || buffer(n),
        move |buffer| {
            let batch = ids.try_batch(n).expect("the sequence is never used up");
            black_box(batch.copy_to(buffer));
        },
    )
}

fn batch<C: Clock + Sync>(ids: &Generator<C>, n: u32) -> Case<'_> {
    Case::with_state(
        batch_name("batch", n),
        n,
        move || buffer(n),
        move |buffer| {
            let batch = ids.batch(n).expect("the clock does not step");
            black_box(batch.copy_to(buffer));
        },
    )
}

fn buffer(n: u32) -> Vec<Id> {
    vec![Id::default(); n as usize]
}

fn batch_name(call: &str, n: u32) -> String {
    format!("{call}({n}) into a buffer, ticker clock")
}

impl Speed {
    pub(crate) fn bars(&self) -> [Bar; 2] {
        let median_ns = |name: &str| self.comparisons[0].median_ns(name);
        let batch = batch_name("batch", BATCH_BAR);
        [
            Bar {
                name: format!("{EXACT_NEXT}, beyond the {CLOCK_READ}"),
                measured: median_ns(EXACT_NEXT) - median_ns(CLOCK_READ),
                bound: Bound::AtMost(8.0),
                unit: "ns",
            },
            Bar {
                measured: median_ns(&batch),
                name: format!("{batch}, each ID"),
                bound: Bound::AtMost(0.7),
                unit: "ns",
            },
        ]
    }

    pub(crate) fn table(&self) -> Table {
        Comparison::table("time for each ID", &self.comparisons, CLOCK_READ)
    }
}
