//! What a demonstration of jobs says, line by line.

use std::io;
use std::time::Duration;

use serde_json::Value;

use crate::verdict::Verdict;

/// Jobs that one node may have more than another.
const IMBALANCE_MAX: u64 = 3;

/// A restart of a node, or at the end all of them.
#[derive(Clone, Debug, Default)]
pub(super) struct Phase {
    pub(super) name: String,
    /// Whether all jobs ran evenly in the end.
    pub(super) settled: Option<bool>,
    pub(super) moves: u64,
    /// How long jobs were without a node.
    pub(super) p99: Duration,
    pub(super) longest: Duration,
    /// Jobs that ran on two nodes at a time.
    pub(super) overlaps: u64,
    pub(super) running: u64,
    /// How many jobs each node has.
    pub(super) loads: Vec<u64>,
}

/// Reads what was printed; the last one is about all.
pub(super) fn phases(text: &str) -> io::Result<Vec<Phase>> {
    let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let phases: Vec<Phase> = lines.filter_map(|line| phase(&line)).collect();
    match phases.last() {
        Some(last) if last.name == "all" => Ok(phases),
        _ => Err(io::Error::other(format!("the demonstration did not end well:\n{text}"))),
    }
}

fn phase(line: &Value) -> Option<Phase> {
    let number = |name: &str| line[name].as_u64().unwrap_or_default();
    let gap = |name: &str| {
        let ms = line["gap_ms"][name].as_f64().unwrap_or_default();
        Duration::from_secs_f64(ms / 1e3)
    };
    let balance = line["balance"].as_object();
    Some(Phase {
        name: line["phase"].as_str()?.to_owned(),
        settled: line["settled"].as_bool(),
        moves: number("moves"),
        p99: gap("p99"),
        longest: gap("max"),
        overlaps: number("overlaps"),
        running: number("running"),
        loads: balance.into_iter().flatten().filter_map(|(_, load)| load.as_u64()).collect(),
    })
}

/// What must hold of a demonstration.
pub(super) fn check(phases: &[Phase], jobs: u64, verdict: &mut Verdict) {
    for phase in phases.iter().filter(|phase| phase.settled == Some(false)) {
        let name = &phase.name;
        verdict.find("jobs come to rest", format!("not within a minute after {name:?}"));
    }
    let Some(all) = phases.last() else {
        return verdict.find("jobs come to rest", "nothing was said of all");
    };
    verdict.hold("a job runs once", all.overlaps == 0, || {
        format!("{} times a job ran on two nodes", all.overlaps)
    });
    verdict.hold("every job runs", all.running == jobs, || {
        format!("{} of {jobs} jobs run in the end", all.running)
    });
    let least = all.loads.iter().min().copied().unwrap_or_default();
    let most = all.loads.iter().max().copied().unwrap_or_default();
    verdict.hold("loads are even", most - least <= IMBALANCE_MAX, || {
        format!("the nodes have {:?} jobs", all.loads)
    });
    verdict.note("restarts, moves", format!("{}, {}", phases.len().saturating_sub(2), all.moves));
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"{"phase":"all","overlaps":0,"running":29,"moves":58,
        "gap_ms":{"p50":1.0,"p90":2.0,"p99":3.5,"max":4.0},
        "balance":{"node-1":10,"node-2":10,"node-3":9}}"#;

    fn oracles(text: &str) -> Vec<&'static str> {
        let mut verdict = Verdict::default();
        let text = format!("{{\"phase\":\"start\",\"settled\":true}}\n{}", text.replace('\n', ""));
        check(&phases(&text).unwrap(), 29, &mut verdict);
        verdict.findings.iter().map(|finding| finding.oracle).collect()
    }

    #[test]
    fn what_is_printed_is_read() {
        let phases = phases(&GOOD.replace('\n', "")).unwrap();
        assert_eq!((phases[0].moves, phases[0].p99), (58, Duration::from_micros(3500)));
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
        check(&phases(&unsettled).unwrap(), 29, &mut verdict);
        assert_eq!(verdict.findings[0].oracle, "jobs come to rest");
    }

    #[test]
    fn a_demonstration_that_broke_off_is_trouble() {
        assert!(phases("error: no store\n").is_err());
    }
}
