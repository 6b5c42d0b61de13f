//! What a demonstration of jobs says, line by line.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use serde::Deserialize;

use super::IMBALANCE_MAX;
use crate::verdict::Verdict;

/// Everything that was said.
#[derive(Clone, Debug)]
pub(super) struct Report {
    phases: Vec<Phase>,
    all: All,
    pub(super) moves: u64,
    /// How long jobs were without a node.
    pub(super) p99: Duration,
    pub(super) longest: Duration,
}

/// A restart of a node, or the start.
#[derive(Clone, Debug, Deserialize)]
struct Phase {
    phase: String,
    /// Whether all jobs ran evenly in the end.
    settled: bool,
}

/// All of them.
#[derive(Clone, Debug, Deserialize)]
struct All {
    moves: u64,
    /// Jobs that ran on two nodes at a time.
    overlaps: u64,
    running: u64,
    /// How many jobs each node has.
    balance: BTreeMap<String, u64>,
    /// None if nothing moved.
    gap_ms: Option<Gaps>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
struct Gaps {
    p99: f64,
    max: f64,
}

/// Reads what was printed; the last line is about all. What is missing is not taken for nothing.
pub(super) fn read(text: &str) -> io::Result<Report> {
    let trouble = |why: &str| io::Error::other(format!("{why}:\n{text}"));
    let mut phases: Vec<&str> =
        text.lines().filter(|line| line.starts_with("{\"phase\":")).collect();
    let all = phases.pop().filter(|line| line.starts_with("{\"phase\":\"all\""));
    let all = all.ok_or_else(|| trouble("the demonstration did not end well"))?;
    let all: All = serde_json::from_str(all).map_err(|error| trouble(&error.to_string()))?;
    let phases = phases.into_iter().map(serde_json::from_str).collect::<Result<Vec<_>, _>>();
    let phases = phases.map_err(|error| trouble(&error.to_string()))?;
    let gaps = match all.gap_ms {
        None if all.moves > 0 => return Err(trouble("jobs moved, and nothing says for how long")),
        gaps => gaps.unwrap_or(Gaps { p99: 0.0, max: 0.0 }),
    };
    let time = |ms: f64| Duration::try_from_secs_f64(ms / 1e3).map_err(io::Error::other);
    Ok(Report { moves: all.moves, p99: time(gaps.p99)?, longest: time(gaps.max)?, phases, all })
}

/// What must hold of a demonstration.
pub(super) fn check(report: &Report, jobs: u64, verdict: &mut Verdict) {
    let Report { phases, all, .. } = report;
    for phase in phases.iter().filter(|phase| !phase.settled) {
        let name = &phase.phase;
        verdict.find("jobs come to rest", format!("not within a minute after {name:?}"));
    }
    verdict.hold("a job runs once", all.overlaps == 0, || {
        format!("{} times a job ran on two nodes", all.overlaps)
    });
    verdict.hold("every job runs", all.running == jobs, || {
        format!("{} of {jobs} jobs run in the end", all.running)
    });
    let least = all.balance.values().min().copied().unwrap_or_default();
    let most = all.balance.values().max().copied().unwrap_or_default();
    verdict.hold("loads are even", most - least <= IMBALANCE_MAX, || {
        format!("the nodes have {:?} jobs", all.balance)
    });
    verdict.note("restarts, moves", format!("{}, {}", phases.len().saturating_sub(1), all.moves));
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"{"phase":"all","overlaps":0,"running":29,"moves":58,
        "gap_ms":{"p50":1.0,"p90":2.0,"p99":3.5,"max":4.0},
        "balance":{"node-1":10,"node-2":10,"node-3":9}}"#;

    fn said(text: &str) -> io::Result<Report> {
        read(&format!("{{\"phase\":\"start\",\"settled\":true}}\n{}", text.replace('\n', "")))
    }

    fn oracles(text: &str) -> Vec<&'static str> {
        let mut verdict = Verdict::default();
        check(&said(text).unwrap(), 29, &mut verdict);
        verdict.findings.iter().map(|finding| finding.oracle).collect()
    }

    #[test]
    fn what_is_printed_is_read() {
        let report = said(GOOD).unwrap();
        assert_eq!((report.moves, report.p99), (58, Duration::from_micros(3500)));
        assert!(oracles(GOOD).is_empty());
    }

    #[test]
    fn a_job_that_ran_twice_or_not_at_all_and_uneven_loads_are_found() {
        assert_eq!(oracles(&GOOD.replace("\"overlaps\":0", "\"overlaps\":1")), ["a job runs once"]);
        assert_eq!(oracles(&GOOD.replace("\"running\":29", "\"running\":28")), ["every job runs"]);
        assert_eq!(oracles(&GOOD.replace("\"node-3\":9", "\"node-3\":6")), ["loads are even"]);
        let unsettled =
            format!("{{\"phase\":\"restart\",\"settled\":false}}\n{}", GOOD.replace('\n', ""));
        let mut verdict = Verdict::default();
        check(&read(&unsettled).unwrap(), 29, &mut verdict);
        assert_eq!(verdict.findings[0].oracle, "jobs come to rest");
    }

    #[test]
    fn a_demonstration_that_broke_off_or_leaves_something_out_is_trouble() {
        assert!(read("error: no store\n").is_err());
        assert!(read("{\"phase\":\"start\",\"settled\":true}\n").is_err());
        for field in ["\"overlaps\":0,", "\"running\":29,", "\"moves\":58,", "\"max\":4.0"] {
            let less = GOOD.replace(field, "").replace("3.5,}", "3.5}");
            assert_ne!(less, GOOD);
            assert!(said(&less).is_err(), "{less}");
        }
        assert!(said(&GOOD.replace("gap_ms", "gaps")).is_err());
        assert!(said(&GOOD.replace("balance", "loads")).is_err());
        let unsaid = format!("{{\"phase\":\"restart\"}}\n{}", GOOD.replace('\n', ""));
        assert!(read(&unsaid).is_err(), "whether it settled");
    }
}
