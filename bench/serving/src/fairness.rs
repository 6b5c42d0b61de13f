//! One key floods a node while another asks for single IDs: what the second notices, beside what it
//! notices of the same flood on another node of the machine, with which it shares only the cores.

use std::fmt::Write;
use std::time::Duration;

use frazil::coord::internal::time::boot_time;
use frazil_bench::{Table, verdict};
use frazil_server::keys::NewKey;
use tempfile::NamedTempFile;

use crate::at_rate::{histogram, pause};
use crate::client::{Client, Request, Workload};
use crate::generator::{Demand, Load};
use crate::http::median;
use crate::overload::layout;
use crate::process::Process;
use crate::{MeasurementPlan, Outcome};

/// The p99 on the node that is flooded, beside that on the other.
const RATIO_MAX: f64 = 2.0;
/// How long the quiet client waits between an answer and the next request.
const EVERY: Duration = Duration::from_millis(2);
/// How long the flood rises before anything counts.
const WARM_UP: Duration = Duration::from_millis(700);
/// Rounds in which the two take turns.
const ROUNDS_MAX: usize = 3;

const FLOODS: [(Demand, u32); 4] = [
    (Demand::Resp { pipeline: 64 }, 12),
    (Demand::Resp { pipeline: 64 }, 8),
    (Demand::Http { batch: 100 }, 8),
    (Demand::Stream, 8),
];
const QUIET: Workload = Workload { name: "one ID over HTTP", batch: 1, request: Request::JSON };

/// What the quiet client met in a round.
struct QuietClientLatency {
    p99_ms: f64,
    failed: u64,
}

pub(crate) fn report(effort: MeasurementPlan) -> Outcome {
    println!("Fairness: p99 of one key's single IDs while another key floods");
    let keys = Keys::new()?;
    let heading = ["flood", "bits", "elsewhere ms", "same node ms", "ratio", "bar", "", "failed"];
    let mut table = Table::new(&heading);
    for (flood, bits) in FLOODS {
        let words = [format!("layout={}", layout(Some(bits))), keys.word()];
        let role = ["node", &words[0], &words[1]];
        let (node, other) = (Process::start(&role)?, Process::start(&role)?);
        let (mut elsewhere, mut same, mut failed) = (Vec::new(), Vec::new(), 0);
        for _ in 0..effort.rounds.min(ROUNDS_MAX) {
            elsewhere.push(round(&keys, flood, &node, &other, effort.span)?.p99_ms);
            let met = round(&keys, flood, &node, &node, effort.span)?;
            same.push(met.p99_ms);
            failed += met.failed;
        }
        let (elsewhere, same) = (median(&mut elsewhere), median(&mut same));
        table.row([
            flood.name(),
            bits.to_string(),
            format!("{elsewhere:.2}"),
            format!("{same:.2}"),
            format!("{:.2}", same / elsewhere),
            format!("{RATIO_MAX:.1}"),
            verdict(same / elsewhere <= RATIO_MAX && failed == 0).into(),
            failed.to_string(),
        ]);
    }
    println!("{table}");
    Ok(())
}

/// The quiet client asks `node` while `flooded` is flooded.
fn round(
    keys: &Keys,
    flood: Demand,
    node: &Process,
    flooded: &Process,
    span: Duration,
) -> Result<QuietClientLatency, Box<dyn std::error::Error>> {
    let open = || Client::with_key(node, QUIET, Some(keys.quiet.text()));
    let mut client = open()?;
    let load = Load::start(flood, flooded, Some(keys.loud.text()))?;
    pause(WARM_UP);
    let (mut latency, mut failed) = (histogram()?, 0);
    let end = boot_time() + span;
    // It has one request under way at a time, and what counts is how long that takes.
    while boot_time() < end {
        let began = boot_time();
        if client.ask().is_err() {
            failed += 1;
            client = open()?;
        }
        let took = (boot_time() - began).as_nanos();
        latency.saturating_record(u64::try_from(took).unwrap_or(u64::MAX));
        pause(EVERY);
    }
    load.stop()?;
    #[expect(clippy::cast_precision_loss, reason = "milliseconds")]
    let p99_ms = latency.value_at_quantile(0.99) as f64 / 1e6;
    Ok(QuietClientLatency { p99_ms, failed })
}

/// Two keys, in a file for the nodes.
pub(crate) struct Keys {
    file: NamedTempFile,
    loud: NewKey,
    quiet: NewKey,
}

impl Keys {
    pub(crate) fn new() -> std::io::Result<Self> {
        let (loud, quiet) = (NewKey::mint()?, NewKey::mint()?);
        let mut text = String::new();
        for (key, name) in [(&loud, "loud"), (&quiet, "quiet")] {
            let (id, hash) = (key.id(), key.sha256());
            // A string has room.
            let _ = writeln!(
                text,
                "[[key]]\nid = \"{id}\"\nname = \"{name}\"\nroles = [\"ids\", \"read\"]\nsha256 = \"{hash}\""
            );
        }
        let file = NamedTempFile::new()?;
        std::fs::write(file.path(), text)?;
        Ok(Self { file, loud, quiet })
    }

    /// What tells a node of them.
    pub(crate) fn word(&self) -> String {
        format!("keys={}", self.file.path().display())
    }
}
