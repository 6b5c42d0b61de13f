//! More demand than a layout has IDs: what is issued all the same, and how soon all is well afterwards.
//!
//! A layout caps what a lane issues. A server that spends more on those who wait than on those whom it
//! serves issues less than the cap while the load lasts, and looks healthy below it.

use std::time::Duration;

use frazil::coord::internal::time::boot_time;
use frazil_bench::{Table, verdict};

use crate::at_rate::pause;
use crate::client::{Client, Request, Workload};
use crate::counters::Counters;
use crate::generator::{Demand, Load};
use crate::http::median;
use crate::process::Process;
use crate::{MeasurementPlan, Outcome};

/// The bits of sequence that are asked for too much.
const BITS: [u32; 4] = [12, 10, 8, 6];
/// Bits of sequence and worker together.
const LOW_BITS: u32 = 22;
/// Milliseconds, which are the ticks, in a second.
const TICKS: f64 = 1000.0;
/// The part of the cap that must be issued, and the part of the best that a demand reaches with any
/// layout where that is less: then not the layout is what limits it.
const OF_CAP_MIN: f64 = 0.95;
const OF_BEST_MIN: f64 = 0.80;
/// How soon after the load a single ID is answered as before.
const BACK_MAX: Duration = Duration::from_secs(1);
/// Before anything counts: the first moments are those of a sequence that is not used up yet.
const WARM_UP: Duration = Duration::from_millis(700);
/// Requests that tell how long a single ID takes without load.
const SINGLES: usize = 200;
/// Whatever is quicker than this is as quick as without load: an idle machine takes tens of microseconds, and
/// ten in a row of those are luck.
const NORMAL_MIN: Duration = Duration::from_millis(1);
/// Answers in a row that are as quick as those.
const IN_A_ROW: usize = 10;
/// How long one waits for that.
const PATIENCE: Duration = Duration::from_secs(10);
/// Rounds in which the layouts take turns, each for a part of the time: what disturbs the machine
/// disturbs all alike.
const ROUNDS_MAX: usize = 3;

const DEMANDS: [Demand; 10] = [
    Demand::Resp { pipeline: 1 },
    Demand::Resp { pipeline: 16 },
    Demand::Resp { pipeline: 64 },
    Demand::Resp { pipeline: 200 },
    Demand::Resp { pipeline: 500 },
    Demand::Http { batch: 1 },
    Demand::Http { batch: 100 },
    Demand::Http { batch: 1000 },
    Demand::Call,
    Demand::Stream,
];

/// One demand on one layout: the medians of its rounds, and the worst of what must not be slow.
struct Row {
    /// None: nothing caps.
    bits: Option<u32>,
    issued: f64,
    refused: f64,
    core: f64,
    metrics: Duration,
    /// None: it was not as before within the time that one waits.
    back: Option<Duration>,
}

pub(crate) fn report(effort: MeasurementPlan) -> Outcome {
    println!(
        "Overload: all that a load generator asks for, one lane, a tick of 1 ms; the first row of each has \
         a layout that caps nothing"
    );
    // A quick look has one demand of each protocol, and the layouts at both ends.
    let is_quick = effort.rounds == 1;
    let quick = |demand: &Demand| {
        let few = [Demand::Resp { pipeline: 64 }, Demand::Http { batch: 100 }, Demand::Stream];
        !is_quick || few.contains(demand)
    };
    let bits: &[u32] = if is_quick { &[12, 8] } else { &BITS };
    let layouts: Vec<_> = [None].into_iter().chain(bits.iter().copied().map(Some)).collect();
    let heading = [
        "demand",
        "bits",
        "IDs/s",
        "cap",
        "demand/cap",
        "of cap",
        "of best",
        "of bar",
        "",
        "refused/s",
        "core",
        "metrics ms",
        "back ms",
        "",
    ];
    let mut table = Table::new(&heading);
    for demand in DEMANDS.into_iter().filter(quick) {
        let rows = measure(demand, &layouts, effort)?;
        let best = rows.iter().map(|row| row.issued).fold(0.0, f64::max);
        for row in &rows {
            table.row(line(demand, row, best));
        }
    }
    println!("{table}");
    Ok(())
}

fn line(demand: Demand, row: &Row, best: f64) -> [String; 14] {
    let cap = row.bits.map(cap);
    #[expect(clippy::cast_precision_loss, reason = "a small number")]
    let batch = demand.batch() as f64;
    // Whoever waits for an answer asks for nothing meanwhile, and would have asked for as much as with
    // a layout that caps nothing.
    let demanded = (row.issued + row.refused * batch).max(best);
    let least = cap.map(|cap| (OF_CAP_MIN * cap).min(OF_BEST_MIN * best));
    let of =
        |whole: Option<f64>| whole.map_or("-".to_owned(), |of| format!("{:.2}", row.issued / of));
    let back = row.back.map_or(format!(">{}", PATIENCE.as_millis()), |back| {
        format!("{:.0}", back.as_secs_f64() * 1000.0)
    });
    [
        demand.name(),
        row.bits.map_or("-".to_owned(), |bits| bits.to_string()),
        format!("{:.0}", row.issued),
        cap.map_or("-".to_owned(), |cap| format!("{cap:.0}")),
        cap.map_or("-".to_owned(), |cap| format!("{:.2}", demanded / cap)),
        of(cap),
        format!("{:.2}", row.issued / best),
        of(least),
        least.map_or("", |least| verdict(row.issued >= least)).into(),
        format!("{:.0}", row.refused),
        format!("{:.2}", row.core),
        format!("{:.0}", row.metrics.as_secs_f64() * 1000.0),
        back,
        verdict(row.back.is_some_and(|back| back <= BACK_MAX)).into(),
    ]
}

/// IDs a second of one lane.
fn cap(bits: u32) -> f64 {
    f64::from(1_u32 << bits) * TICKS
}

/// A layout with so many bits of sequence. One that caps nothing has four IDs for each nanosecond, and
/// one bit of time less, for `INCR` answers with signed integers.
pub(crate) fn layout(bits: Option<u32>) -> String {
    let (time, worker, sequence) = match bits {
        Some(bits) => (41, LOW_BITS - bits, bits),
        None => (40, 1, LOW_BITS),
    };
    format!("time:{time} worker:{worker} sequence:{sequence} @2024-01-01T00:00:00Z tick:1ms")
}

/// What one demand comes to on each layout, in rounds in which they take turns.
fn measure(
    demand: Demand,
    layouts: &[Option<u32>],
    effort: MeasurementPlan,
) -> Result<Vec<Row>, Box<dyn std::error::Error>> {
    let start =
        |bits: &Option<u32>| Process::start(&["node", &format!("layout={}", layout(*bits))]);
    let nodes = layouts.iter().map(start).collect::<Result<Vec<_>, _>>()?;
    let rounds = effort.rounds.min(ROUNDS_MAX);
    let span = effort.span / u32::try_from(rounds)?;
    let mut all: Vec<Vec<Row>> = layouts.iter().map(|_| Vec::new()).collect();
    for _ in 0..rounds {
        for ((bits, node), rows) in layouts.iter().zip(&nodes).zip(&mut all) {
            rows.push(round(demand, *bits, node, span)?);
        }
    }
    Ok(all.iter().map(|rows| Row::of(rows)).collect())
}

fn round(
    demand: Demand,
    bits: Option<u32>,
    node: &Process,
    span: Duration,
) -> Result<Row, Box<dyn std::error::Error>> {
    let single = Single::of(node, demand)?;
    let load = Load::start(demand, node, None)?;
    pause(WARM_UP);
    let (before, used) = (Counters::read(node, demand.protocol())?, node.usage()?);
    pause(span);
    let (after, in_all) = (Counters::read(node, demand.protocol())?, node.usage()?);
    load.stop()?;
    let back = single.back(node);
    let seconds = (after.at - before.at).as_secs_f64();
    #[expect(clippy::cast_precision_loss, reason = "some hundred million")]
    let rate = |before: u64, after: u64| after.saturating_sub(before) as f64 / seconds;
    Ok(Row {
        bits,
        issued: rate(before.ids, after.ids),
        refused: rate(before.refused, after.refused),
        core: (in_all.cpu - used.cpu).as_secs_f64() / seconds,
        metrics: after.took.max(before.took),
        back,
    })
}

impl Row {
    fn of(rounds: &[Self]) -> Self {
        let of = |value: &dyn Fn(&Self) -> f64| {
            median(&mut rounds.iter().map(value).collect::<Vec<_>>())
        };
        let back: Option<Vec<_>> = rounds.iter().map(|round| round.back).collect();
        Self {
            bits: rounds.first().and_then(|round| round.bits),
            issued: of(&|round| round.issued),
            refused: of(&|round| round.refused),
            core: of(&|round| round.core),
            metrics: rounds.iter().map(|round| round.metrics).max().unwrap_or_default(),
            back: back.and_then(|back| back.into_iter().max()),
        }
    }
}

/// A client that asks for one ID at a time, over the protocol that is loaded.
struct Single {
    way: Workload,
    /// The longest that one took without load.
    normal: Duration,
}

impl Single {
    fn of(node: &Process, demand: Demand) -> Result<Self, Box<dyn std::error::Error>> {
        let request = match demand {
            Demand::Resp { .. } => Request::Resp,
            Demand::Http { .. } => Request::BINARY,
            Demand::Call | Demand::Stream => Request::Stream,
        };
        let way = Workload { name: "one ID", batch: 1, request };
        let mut client = Client::open(node, way)?;
        let mut normal = NORMAL_MIN;
        for round in 0..2 * SINGLES {
            let began = boot_time();
            client.ask()?;
            // The first half finds everything cold.
            if round >= SINGLES {
                normal = normal.max(boot_time() - began);
            }
        }
        Ok(Self { way, normal })
    }

    /// When the first of several in a row was asked for that all took no longer than without load.
    fn back(&self, node: &Process) -> Option<Duration> {
        let ended = boot_time();
        let (mut client, mut since, mut in_a_row) = (None, ended, 0);
        while boot_time() - ended < PATIENCE {
            let began = boot_time();
            let is_normal = self.ask(node, &mut client) && boot_time() - began <= self.normal;
            match is_normal {
                true if in_a_row == 0 => (since, in_a_row) = (began, 1),
                true => in_a_row += 1,
                false => in_a_row = 0,
            }
            if in_a_row == IN_A_ROW {
                return Some(since - ended);
            }
        }
        None
    }

    /// Whether an ID came; the connection is made anew after a failure.
    fn ask(&self, node: &Process, client: &mut Option<Client>) -> bool {
        if client.is_none() {
            *client = Client::open(node, self.way).ok();
        }
        let came = client.as_mut().is_some_and(|client| client.ask().is_ok());
        if !came {
            *client = None;
        }
        came
    }
}
