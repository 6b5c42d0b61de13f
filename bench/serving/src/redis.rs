//! RESP beside Redis, by redis-benchmark.

use std::process::Command;
use std::time::Duration;

use frazil_bench::{Table, verdict};
use frazil_rig::Redis;

use crate::http::median;
use crate::process::{Process, Usage};
use crate::{MeasurementPlan, Outcome};

/// Requests a second that a round is expected to reach, to know how many make a round.
const EXPECTED: [(u32, u64); 3] = [(1, 60_000), (16, 700_000), (64, 1_500_000)];
/// What must be reached beside Redis, by depth of the pipeline.
const fn least(pipeline: u32) -> f64 {
    match pipeline {
        ..16 => 1.0,
        16..64 => 1.1,
        64.. => 1.5,
    }
}
/// The CPU time of a command beside that of Redis.
const CPU_RATIO_MAX: f64 = 0.9;

/// One contender in one round.
#[derive(Clone, Copy, Debug)]
struct Round {
    per_second: f64,
    cpu_micros: f64,
}

pub(crate) fn report(effort: MeasurementPlan) -> Outcome {
    println!("RESP, redis-benchmark INCR x with 50 connections, beside redis-server");
    let heading =
        ["pipeline", "Redis/s", "ours/s", "ratio", "Redis us", "ours us", "CPU ratio", "bar", ""];
    let mut table = Table::new(&heading);
    let (redis, node) = (Redis::start()?, Process::start(&["node"])?);
    let redis_id = redis.id().ok_or("redis-server does not run")?;
    for (pipeline, expected) in EXPECTED {
        let requests = expected * u64::try_from(effort.span.as_millis())? / 1000;
        let (mut theirs, mut ours) = (Vec::new(), Vec::new());
        for _ in 0..effort.rounds {
            let port = redis.port().to_string();
            theirs.push(round(&port, pipeline, requests, || Usage::of(redis_id))?);
            let port = node.addresses[2].rsplit(':').next().unwrap_or_default();
            ours.push(round(port, pipeline, requests, || node.usage())?);
        }
        let rate =
            |rounds: &[Round]| median(&mut rounds.iter().map(|r| r.per_second).collect::<Vec<_>>());
        let cpu =
            |rounds: &[Round]| median(&mut rounds.iter().map(|r| r.cpu_micros).collect::<Vec<_>>());
        let (ratio, cpu_ratio) = (rate(&ours) / rate(&theirs), cpu(&ours) / cpu(&theirs));
        let holds = ratio >= least(pipeline) && cpu_ratio <= CPU_RATIO_MAX;
        table.row([
            pipeline.to_string(),
            format!("{:.0}", rate(&theirs)),
            format!("{:.0}", rate(&ours)),
            format!("{ratio:.2}"),
            format!("{:.2}", cpu(&theirs)),
            format!("{:.2}", cpu(&ours)),
            format!("{cpu_ratio:.2}"),
            format!("{:.2}, CPU {CPU_RATIO_MAX:.2}", least(pipeline)),
            verdict(holds).into(),
        ]);
    }
    println!("{table}");
    Ok(())
}

fn round(
    port: &str,
    pipeline: u32,
    requests: u64,
    usage: impl Fn() -> std::io::Result<Usage>,
) -> Result<Round, Box<dyn std::error::Error>> {
    let before = usage()?.cpu;
    let output = Command::new("redis-benchmark")
        .args(["-p", port, "-c", "50", "--csv", "-n", &requests.to_string()])
        .args(["-P", &pipeline.to_string(), "INCR", "x"])
        .output()?;
    let spent: Duration = usage()?.cpu - before;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = text.lines().find(|line| line.starts_with("\"INCR x\""));
    let field = line.and_then(|line| line.split(',').nth(1));
    let rate = field.ok_or_else(|| format!("redis-benchmark says {text}"))?;
    #[expect(clippy::cast_precision_loss, reason = "a few million")]
    let cpu_micros = spent.as_secs_f64() * 1e6 / requests as f64;
    Ok(Round { per_second: rate.trim_matches('"').parse()?, cpu_micros })
}
