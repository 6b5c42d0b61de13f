//! Several cases in interleaved rounds.

use std::time::Duration;

use crate::case::Case;
use crate::run::{Run, run};
use crate::table::Table;

/// The share of its cores that a case must have had to be measured on that many. The rest is for
/// the start of the threads and the few things that any machine does besides.
const PARALLEL_LEAST: f64 = 0.9;

/// How long to measure.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// How often each case runs. An odd number has a middle.
    pub rounds: usize,
    /// How long it runs each time.
    pub round: Duration,
}

/// What the cases came to on a number of threads.
#[derive(Clone, Debug)]
pub struct Comparison {
    threads: usize,
    summaries: Vec<Summary>,
}

#[derive(Clone, Debug)]
struct Summary {
    name: String,
    median_ns: f64,
    best_ns: f64,
    cpu_median_ns: f64,
    cores_used: f64,
}

/// Runs every case once a round, in an order that rotates, so that what disturbs the machine
/// disturbs all alike.
#[must_use]
pub fn compare(cases: &[&Case<'_>], threads: usize, plan: Plan) -> Comparison {
    let mut runs = vec![Vec::with_capacity(plan.rounds); cases.len()];
    for round in 0..plan.rounds {
        for turn in 0..cases.len() {
            let at = (round + turn) % cases.len();
            runs[at].push(run(cases[at], threads, plan.round));
        }
    }
    let summaries = cases.iter().zip(&runs).map(|(case, runs)| Summary::of(case, runs));
    Comparison { threads, summaries: summaries.collect() }
}

impl Comparison {
    /// The number of threads.
    #[must_use]
    pub const fn threads(&self) -> usize {
        self.threads
    }

    /// Nanoseconds for each ID of a case, in its middle round.
    ///
    /// # Panics
    /// If no case has that name.
    #[must_use]
    pub fn median_ns(&self, name: &str) -> f64 {
        let summary = self.summaries.iter().find(|summary| summary.name == name);
        summary.expect("a case of that name was measured").median_ns
    }

    /// Whether the threads of every case ran at the same time. On a busy machine they take turns on
    /// fewer cores, do not get into each other's way, and look fast.
    #[must_use]
    pub fn ran_in_parallel(&self) -> bool {
        let least = PARALLEL_LEAST * self.threads as f64;
        self.summaries.iter().all(|summary| summary.cores_used >= least)
    }

    /// Comparisons below each other; the ratio is that of the medians to the baseline's.
    #[must_use]
    pub fn table(title: &str, comparisons: &[Self], baseline: &str) -> Table {
        let mut table = Table::new(&[
            title,
            "threads",
            "median ns",
            "best ns",
            "ratio",
            "CPU ns",
            "cores used",
        ]);
        for comparison in comparisons {
            let unit_ns = comparison.median_ns(baseline);
            for summary in &comparison.summaries {
                table.row([
                    summary.name.clone(),
                    comparison.threads.to_string(),
                    format!("{:.2}", summary.median_ns),
                    format!("{:.2}", summary.best_ns),
                    format!("{:.2}", summary.median_ns / unit_ns),
                    format!("{:.2}", summary.cpu_median_ns),
                    format!("{:.2}", summary.cores_used),
                ]);
            }
        }
        table
    }
}

impl Summary {
    fn of(case: &Case<'_>, runs: &[Run]) -> Self {
        let wall_ns = sorted(runs.iter().map(Run::wall_ns_per_id));
        let cpu_ns = sorted(runs.iter().map(Run::cpu_ns_per_id));
        let middle = runs.len() / 2;
        Self {
            name: case.name().into(),
            median_ns: wall_ns[middle],
            best_ns: wall_ns[0],
            cpu_median_ns: cpu_ns[middle],
            cores_used: runs.iter().copied().sum::<Run>().cores_used(),
        }
    }
}

fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values
}
