//! What is left of runs: a JSON file for each, and a page to read.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::io;
use std::path::Path;

use serde::Serialize;

use crate::availability::{AnswerCounts, IdsInFault};
use crate::stage::{Outcomes, Plan};
use crate::store::Kind;

/// One run.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) scenario: &'static str,
    pub(crate) title: &'static str,
    pub(crate) store: Kind,
    pub(crate) seed: u64,
    pub(crate) scale: f64,
    pub(crate) version: String,
    pub(crate) mutant: Option<String>,
    pub(crate) passes: bool,
    /// What went wrong with the rig itself.
    pub(crate) trouble: Option<String>,
    #[serde(flatten)]
    pub(crate) outcomes: Option<Outcomes>,
}

impl Report {
    pub(crate) fn new(
        plan: &Plan,
        title: &'static str,
        version: &str,
        run: io::Result<Outcomes>,
    ) -> Self {
        let (outcomes, trouble) = match run {
            Ok(outcomes) => (Some(outcomes), None),
            Err(error) => (None, Some(error.to_string())),
        };
        Self {
            scenario: plan.scenario,
            title,
            store: plan.store,
            seed: plan.seed,
            scale: plan.scale,
            version: version.to_owned(),
            mutant: plan.mutant.clone(),
            passes: outcomes.as_ref().is_some_and(|outcomes| outcomes.verdict.passes()),
            trouble,
            outcomes,
        }
    }

    /// Whether one of these oracles has found something.
    pub(crate) fn is_found_by(&self, oracles: &[&str]) -> bool {
        let verdict = self.outcomes.as_ref().map(|outcomes| &outcomes.verdict);
        let mut findings = verdict.into_iter().flat_map(|verdict| &verdict.findings);
        findings.any(|finding| oracles.contains(&finding.oracle))
    }

    /// How much was found.
    pub(crate) fn finding_count(&self) -> u64 {
        self.outcomes.as_ref().map_or(0, |outcomes| outcomes.verdict.finding_count)
    }

    /// Writes `NAME.json` and `NAME.txt`.
    pub(crate) fn save(&self, directory: &Path) -> io::Result<()> {
        let json = serde_json::to_string_pretty(self).map_err(io::Error::other)?;
        fs::write(directory.join("report.json"), json)?;
        fs::write(directory.join("report.txt"), self.page())
    }

    /// One line of the scorecard.
    pub(crate) fn line(&self) -> String {
        let Self { scenario, title, store, seed, .. } = self;
        let word = if self.passes { "pass" } else { "FAIL" };
        let mut line = format!("{word}  {scenario}  {store:<5}  {title:<34}  seed {seed:<20}");
        match &self.outcomes {
            None => line += &format!("  {}", self.trouble.as_deref().unwrap_or_default()),
            Some(outcomes) => {
                let counts = outcomes.counts;
                let _ = write!(
                    line,
                    "  {:>11} IDs  {:>3} faults  {:>5.0} s",
                    counts.ids,
                    outcomes.faults.len(),
                    outcomes.seconds
                );
                for bar in outcomes.verdict.bars.iter().filter(|bar| !bar.holds()) {
                    let _ = write!(line, "  over the bar: {} {:.0} ms", bar.name, bar.measured_ms);
                }
            }
        }
        line
    }

    /// What was done, each with how often: faults that took effect, or the run would have failed.
    pub(crate) fn faults_by_kind(&self) -> String {
        let mut faults_by_kind = BTreeMap::<&str, u64>::new();
        for fault in self.outcomes.iter().flat_map(|outcomes| &outcomes.faults) {
            *faults_by_kind.entry(&fault.what).or_default() += 1;
        }
        let told: Vec<_> =
            faults_by_kind.into_iter().map(|(what, times)| format!("{times} x {what}")).collect();
        told.join("; ")
    }

    /// The whole run, to be read.
    pub(crate) fn page(&self) -> String {
        let mut page = self.line();
        page.push('\n');
        let Some(outcomes) = &self.outcomes else { return page };
        let verdict = &outcomes.verdict;
        for finding in &verdict.findings {
            let _ = writeln!(page, "  found: {}: {}", finding.oracle, finding.text);
        }
        let more = verdict.finding_count.saturating_sub(verdict.findings.len() as u64);
        if more > 0 {
            let _ = writeln!(page, "  found: {more} more");
        }
        for guard in &verdict.guards {
            let word = if guard.holds() { "seen" } else { "NOT SEEN ENOUGH" };
            let _ = writeln!(page, "  {word}: {}: {} of {}", guard.name, guard.seen, guard.needed);
        }
        for bar in &verdict.bars {
            let word = if bar.holds() { "within the bar" } else { "over the bar" };
            let (measured, allowed) = (bar.measured_ms, bar.allowed_ms);
            let _ = writeln!(page, "  {word}: {}: {measured:.0} of {allowed:.0} ms", bar.name);
        }
        for (name, value) in &verdict.notes {
            let _ = writeln!(page, "  {name}: {value}");
        }
        let counts = outcomes.counts;
        let sum = |of: fn(&IdsInFault) -> Option<AnswerCounts>| -> u64 {
            outcomes.ids_in_faults.iter().filter_map(of).map(|given| given.ids).sum()
        };
        let _ = writeln!(
            page,
            "  {} IDs in {} answers; while faults lasted {} of nodes that they were done to and {} of \
             others; {} workers, {} tenures; refused {:?}, lost {}",
            counts.ids,
            counts.answers,
            sum(|ids| ids.faulted),
            sum(|ids| ids.spared),
            counts.workers,
            counts.tenures,
            outcomes.refused,
            outcomes.lost
        );
        for line in outcomes.availability.lines() {
            let _ = writeln!(page, "  {line}");
        }
        for fault in &outcomes.faults {
            let node =
                fault.node.map_or_else(|| "the store".to_owned(), |node| format!("node {node}"));
            let (begin, end) = (fault.begin.as_secs_f64(), fault.end.as_secs_f64());
            let _ = writeln!(page, "  {begin:9.3} to {end:9.3} s  {node}: {}", fault.what);
        }
        page
    }
}
