//! A billion IDs, from the first to the last.

use std::time::{Duration, Instant};

use frazil_audit::IdSet;
use frazil_id::{Id, Run};

use super::stream::{LAYOUT, Stream};
use crate::bar::{Bar, Bound};

const IDS: u64 = 1_000_000_000;
/// IDs that are taken at once where they come in runs.
const RUN: u64 = 4096;
const MEGABYTE: f64 = 1e6;

/// What a billion IDs took.
pub(crate) struct Billion {
    fills: [(&'static str, Fill); 3],
}

struct Fill {
    time: Duration,
    memory_bytes: usize,
}

impl Billion {
    pub(crate) fn measure() -> Self {
        Self {
            fills: [
                ("in runs of 4,096", fill(in_runs)),
                ("one by one", fill(|seen| one_by_one(seen, Stream::dense()))),
                ("8 workers, one by one", fill(|seen| one_by_one(seen, Stream::interleaved()))),
            ],
        }
    }

    pub(crate) fn bars(&self) -> Vec<Bar> {
        let bars = self.fills.iter().flat_map(|(how, fill)| {
            [
                Bar {
                    name: format!("a billion IDs, {how}"),
                    measured: fill.time.as_secs_f64(),
                    bound: Bound::AtMost(600.0),
                    unit: "s",
                },
                Bar {
                    name: format!("a billion IDs, {how}, memory"),
                    measured: fill.memory_bytes as f64 / MEGABYTE,
                    bound: Bound::AtMost(500.0),
                    unit: "MB",
                },
            ]
        });
        bars.collect()
    }
}

fn fill(work: impl FnOnce(&mut IdSet)) -> Fill {
    let mut seen = IdSet::new(&LAYOUT);
    let start = now();
    work(&mut seen);
    let time = start.elapsed();
    assert_eq!(seen.len(), IDS, "every ID was new");
    Fill { time, memory_bytes: seen.memory_bytes() }
}

fn in_runs(seen: &mut IdSet) {
    let mut left = IDS;
    for tick in 1_u64.. {
        let run = Run { first: Id::from_u64(tick << 22), count: left.min(RUN), stride: 1 };
        assert_eq!(seen.insert_run(&run), Ok(0), "no ID comes twice");
        left -= run.count;
        if left == 0 {
            break;
        }
    }
}

fn one_by_one(seen: &mut IdSet, mut stream: Stream) {
    let ids = usize::try_from(IDS).expect("a billion fits");
    stream.each(ids, |id| {
        assert_eq!(seen.insert(id), Ok(true), "no ID comes twice");
    });
}

#[expect(clippy::disallowed_methods, reason = "this is the stop watch")]
fn now() -> Instant {
    Instant::now()
}
