//! How fast an audit knows whether it saw an ID before, and what it remembers that in.

mod billion;
mod stream;

use std::collections::HashSet;
use std::time::Duration;

use frazil_audit::IdSet;
use frazil_bench::{Case, Comparison, Pace, Plan, Table, compare};

use self::billion::Billion;
use self::stream::{LAYOUT, Stream};
use crate::bar::{Bar, Bound};

const DECODE: &str = "only decode";
const ID_SET: &str = "IdSet::insert";
const HASH_SET: &str = "std HashSet<u64>::insert";
/// IDs of a call, to have the cost of a call out of the way.
const CALL: u32 = 4096;

/// What was measured.
pub(crate) struct Audit {
    streams: Vec<Measured>,
    billion: Option<Billion>,
}

struct Measured {
    name: &'static str,
    comparison: Comparison,
    id_set_bytes: f64,
    hash_set_bytes: f64,
}

pub(crate) fn measure(pace: Pace) -> Audit {
    let plan = pace.pick(
        Plan { rounds: 11, round: Duration::from_millis(200) },
        Plan { rounds: 3, round: Duration::from_millis(50) },
    );
    let memory_ids = pace.pick(20_000_000, 2_000_000);
    let streams = [
        ("dense, one worker", Stream::dense()),
        ("8 workers take turns, 100 a ms each", Stream::interleaved()),
        ("the same, shuffled within 50 ms", Stream::shuffled()),
    ];
    let streams = streams.into_iter().map(|(name, stream)| Measured {
        name,
        comparison: one(&stream, plan),
        id_set_bytes: id_set_bytes(stream.clone(), memory_ids),
        hash_set_bytes: hash_set_bytes(stream, memory_ids),
    });
    let streams = streams.collect();
    let billion = (pace == Pace::Full).then(Billion::measure);
    Audit { streams, billion }
}

fn one(stream: &Stream, plan: Plan) -> Comparison {
    let count = CALL as usize;
    let decode = Case::with_state(
        DECODE,
        CALL,
        || stream.clone(),
        |stream| {
            let mut sum = 0;
            stream.each(count, |id| {
                let parts = id.parts(&LAYOUT).expect("made from this layout");
                sum += parts.tick ^ parts.worker ^ parts.sequence;
            });
            sum
        },
    );
    let id_set = Case::with_state(
        ID_SET,
        CALL,
        || (stream.clone(), IdSet::new(&LAYOUT)),
        |(stream, seen)| {
            let mut repeated = 0;
            stream.each(count, |id| {
                repeated += u64::from(!seen.insert(id).expect("made from this layout"));
            });
            assert_eq!(repeated, 0, "no ID of the stream comes twice");
        },
    );
    let hash_set = Case::with_state(
        HASH_SET,
        CALL,
        || (stream.clone(), HashSet::new()),
        |(stream, seen)| {
            let mut repeated = 0;
            stream.each(count, |id| repeated += u64::from(!seen.insert(id.to_u64())));
            assert_eq!(repeated, 0, "no ID of the stream comes twice");
        },
    );
    compare(&[&decode, &id_set, &hash_set], 1, plan)
}

fn id_set_bytes(mut stream: Stream, ids: usize) -> f64 {
    let mut seen = IdSet::new(&LAYOUT);
    stream.each(ids, |id| {
        seen.insert(id).expect("made from this layout");
    });
    seen.memory_bytes() as f64 / ids as f64
}

/// What its table takes: a byte for each bucket beside the number in it, and one bucket in eight
/// stays empty.
fn hash_set_bytes(mut stream: Stream, ids: usize) -> f64 {
    let mut seen = HashSet::new();
    stream.each(ids, |id| {
        seen.insert(id.to_u64());
    });
    let buckets = (seen.capacity() * 8 / 7).next_power_of_two();
    (buckets * 9) as f64 / ids as f64
}

impl Audit {
    pub(crate) fn bars(&self) -> Vec<Bar> {
        let ordered = &self.streams[..2];
        let bars = ordered.iter().flat_map(|measured| {
            [
                Bar {
                    name: format!("{ID_SET}, {}", measured.name),
                    measured: 1e3 / measured.comparison.median_ns(ID_SET),
                    bound: Bound::AtLeast(20.0),
                    unit: "million a second",
                },
                Bar {
                    name: format!("memory of IdSet, {}", measured.name),
                    measured: measured.id_set_bytes,
                    bound: Bound::AtMost(0.1),
                    unit: "bytes an ID",
                },
            ]
        });
        bars.chain(self.billion.iter().flat_map(Billion::bars)).collect()
    }

    pub(crate) fn table(&self) -> Table {
        let mut table = Table::new(&["seen before?", "ns", "million/s", "ratio", "bytes an ID"]);
        for measured in &self.streams {
            let unit_ns = measured.comparison.median_ns(DECODE);
            for (case, bytes) in [
                (DECODE, None),
                (ID_SET, Some(measured.id_set_bytes)),
                (HASH_SET, Some(measured.hash_set_bytes)),
            ] {
                let ns = measured.comparison.median_ns(case);
                table.row([
                    format!("{}: {case}", measured.name),
                    format!("{ns:.2}"),
                    format!("{:.0}", 1e3 / ns),
                    format!("{:.1}", ns / unit_ns),
                    bytes.map_or_else(String::new, |bytes| format!("{bytes:.3}")),
                ]);
            }
        }
        table
    }
}
