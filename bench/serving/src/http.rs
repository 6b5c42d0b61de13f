//! HTTP at full speed, by wrk.

use std::fs;
use std::process::Command;

use frazil_bench::{Table, verdict};

use crate::process::Process;
use crate::{Effort, Outcome};

/// Connections of wrk: enough to keep the server busy.
pub(crate) const CONNECTIONS: usize = 50;
/// What one Id a request must reach beside the bare handler.
const RATIO_MIN: f64 = 0.90;
/// Ids of the large batches.
const BATCH: u64 = 10_000;

pub(crate) fn report(effort: Effort) -> Outcome {
    one_id(effort)?;
    batches(effort)
}

fn one_id(effort: Effort) -> Outcome {
    let (bare, node) = (Process::start(&["bare"])?, Process::start(&["node", "1"])?);
    let (mut bares, mut ours) = (Vec::new(), Vec::new());
    for _ in 0..effort.rounds {
        bares.push(wrk(effort, &bare.addresses[0], "/ids", CONNECTIONS)?);
        ours.push(wrk(effort, &node.addresses[0], "/ids", CONNECTIONS)?);
    }
    let (bare, ours) = (median(&mut bares), median(&mut ours));
    let ratio = ours / bare;
    println!("HTTP, one Id a request, wrk with {CONNECTIONS} connections");
    let mut table = Table::new(&["server", "requests/s", "ratio", "bar", ""]);
    table.row(["bare hyper".into(), format!("{bare:.0}"), "1.00".into()]);
    let bar = format!("{RATIO_MIN:.2}");
    table.row([
        "frazil".into(),
        format!("{ours:.0}"),
        format!("{ratio:.2}"),
        bar,
        verdict(ratio >= RATIO_MIN).into(),
    ]);
    println!("{table}");
    Ok(())
}

/// The cap is what the layout allows: 4,096 Ids a millisecond and lane.
fn batches(effort: Effort) -> Outcome {
    println!("HTTP, batches of {BATCH} as JSON");
    let mut table = Table::new(&["lanes", "Ids/s", "of the cap", "bar", ""]);
    for (lanes, least) in [("1", 4.0e6), ("4", 4.2e6)] {
        let node = Process::start(&["node", lanes])?;
        let path = format!("/ids?count={BATCH}");
        #[expect(clippy::cast_precision_loss, reason = "a small number")]
        let ids = wrk(effort, &node.addresses[0], &path, 8)? * BATCH as f64;
        let cap = 4.096e6 * lanes.parse::<f64>()?;
        table.row([
            lanes.into(),
            format!("{ids:.0}"),
            format!("{:.2}", ids / cap),
            format!("{least:.0}"),
            verdict(ids >= least).into(),
        ]);
    }
    println!("{table}");
    Ok(())
}

/// Requests a second, all of which succeeded.
pub(crate) fn wrk(
    effort: Effort,
    address: &str,
    path: &str,
    connections: usize,
) -> Result<f64, Box<dyn std::error::Error>> {
    let directory = tempfile::tempdir()?;
    let script = directory.path().join("post.lua");
    fs::write(&script, "wrk.method = 'POST'\n")?;
    let output = Command::new("wrk")
        .args(["-t1", &format!("-c{connections}")])
        .arg(format!("-d{}s", effort.span.as_secs().max(1)))
        .arg("-s")
        .arg(&script)
        .arg(format!("http://{address}{path}"))
        .output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if text.contains("Non-2xx") || text.contains("Socket errors") {
        return Err(format!("requests failed: {text}").into());
    }
    let rate = text.lines().find_map(|line| line.strip_prefix("Requests/sec:"));
    Ok(rate.ok_or_else(|| format!("wrk says {text}"))?.trim().parse()?)
}

pub(crate) fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
