//! HTTP at full speed, by wrk.

use std::fs;
use std::process::Command;

use frazil_bench::{Table, verdict};
use frazil_rig::Certificates;

use crate::process::Process;
use crate::{MeasurementPlan, Outcome};

/// Connections of wrk: enough to keep the server busy.
pub(crate) const CONNECTIONS: usize = 50;
/// What one ID a request must reach beside the bare handler.
const RATIO_MIN: f64 = 1.10;
/// The same with TLS on both.
const TLS_RATIO_MIN: f64 = 1.00;
/// IDs of the large batches.
const BATCH: u64 = 10_000;

pub(crate) fn report(effort: MeasurementPlan) -> Outcome {
    one_id(effort)?;
    batches(effort)
}

fn one_id(effort: MeasurementPlan) -> Outcome {
    let certificates = Certificates::generate()?;
    let (cert, key) = (certificates.server_cert(), certificates.server_key());
    let (cert, key) = (cert.display().to_string(), key.display().to_string());
    let words = [format!("cert={cert}"), format!("key={key}")];
    println!("HTTP, one ID a request, wrk with {CONNECTIONS} connections");
    let mut table = Table::new(&["", "bare hyper/s", "frazil/s", "ratio", "bar", ""]);
    for (name, scheme, bare, node, least) in [
        ("plain", "http", vec!["bare"], vec!["node"], RATIO_MIN),
        (
            "TLS",
            "https",
            vec!["bare", &cert, &key],
            vec!["node", &words[0], &words[1]],
            TLS_RATIO_MIN,
        ),
    ] {
        let (bare, node) = (Process::start(&bare)?, Process::start(&node)?);
        let (mut bares, mut ours) = (Vec::new(), Vec::new());
        for _ in 0..effort.rounds {
            let url = |process: &Process| format!("{scheme}://{}/ids", process.addresses[0]);
            bares.push(wrk_url(effort, &url(&bare), CONNECTIONS)?);
            ours.push(wrk_url(effort, &url(&node), CONNECTIONS)?);
        }
        let (bare, ours) = (median(&mut bares), median(&mut ours));
        table.row([
            name.into(),
            format!("{bare:.0}"),
            format!("{ours:.0}"),
            format!("{:.2}", ours / bare),
            format!("{least:.2}"),
            verdict(ours / bare >= least).into(),
        ]);
    }
    println!("{table}");
    Ok(())
}

/// The cap is what the layout allows: 4,096 IDs a millisecond and lane.
fn batches(effort: MeasurementPlan) -> Outcome {
    println!("HTTP, batches of {BATCH} as JSON");
    let mut table = Table::new(&["lanes", "IDs/s", "of the cap", "bar", ""]);
    for (lanes, least) in [("1", 4.0e6), ("4", 4.2e6)] {
        let node = Process::start(&["node", &format!("lanes={lanes}")])?;
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
    effort: MeasurementPlan,
    address: &str,
    path: &str,
    connections: usize,
) -> Result<f64, Box<dyn std::error::Error>> {
    wrk_url(effort, &format!("http://{address}{path}"), connections)
}

fn wrk_url(
    effort: MeasurementPlan,
    url: &str,
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
        .arg(url)
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
