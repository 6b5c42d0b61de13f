//! The measurements of a demonstration. Their JSON is a contract of `frazil jobs demo --headless`.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use crate::journal::{Journal, Phase, percentile};

/// What became of a phase: the start of all nodes, or the restart of one.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct PhaseReport {
    /// Its name.
    pub phase: String,
    /// Whether all jobs ran evenly in the end.
    pub settled: bool,
    /// How long it took until then.
    pub took_ms: f64,
    /// How many jobs moved.
    pub moves: usize,
    /// How long they were without a node, if any moved.
    pub gap_ms: Option<Gaps>,
}

/// What became of all phases.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Report {
    /// `all`, where a phase has its name.
    pub phase: &'static str,
    /// The store, without its password.
    pub store: String,
    /// How many nodes.
    pub nodes: usize,
    /// How many jobs.
    pub jobs: usize,
    /// How many of them run in the end.
    pub running: usize,
    /// How often two nodes ran one job at a time, which must never be.
    pub overlaps: usize,
    /// How many jobs moved, over all phases.
    pub moves: usize,
    /// How long they were without a node, if any moved.
    pub gap_ms: Option<Gaps>,
    /// How many jobs each node has in the end.
    pub balance: BTreeMap<String, usize>,
    #[serde(skip)]
    is_settled: bool,
}

/// How long jobs were without a node, in milliseconds.
#[derive(Clone, Copy, Debug, Serialize)]
#[non_exhaustive]
pub struct Gaps {
    /// Half of them were shorter.
    pub p50: f64,
    /// Nine of ten were shorter.
    pub p90: f64,
    /// All but one of a hundred were shorter.
    pub p99: f64,
    /// The longest.
    pub max: f64,
}

impl PhaseReport {
    pub(crate) fn of(phase: &Phase) -> Self {
        let mut gaps = phase.gaps.clone();
        gaps.sort_unstable();
        Self {
            phase: phase.name.clone(),
            settled: phase.is_settled,
            took_ms: ms(phase.ended.unwrap_or(phase.began).saturating_sub(phase.began)),
            moves: gaps.len(),
            gap_ms: Gaps::of(&gaps),
        }
    }
}

impl Report {
    pub(crate) fn of(journal: &Journal, store: String) -> Self {
        let (gaps, loads) = (journal.gaps(), journal.loads());
        let names = journal.nodes.iter().map(|node| node.name.clone());
        Self {
            phase: "all",
            store,
            nodes: journal.nodes.len(),
            jobs: journal.jobs.len(),
            running: loads.iter().sum(),
            overlaps: journal.overlaps,
            moves: gaps.len(),
            gap_ms: Gaps::of(&gaps),
            balance: names.zip(loads.iter().copied()).collect(),
            is_settled: journal.is_settled(),
        }
    }

    /// Whether every job runs in the end, evenly, and none ever ran twice at a time.
    #[must_use]
    pub const fn is_well(&self) -> bool {
        self.is_settled && self.overlaps == 0
    }
}

impl Gaps {
    fn of(ordered: &[Duration]) -> Option<Self> {
        let of = |percent| percentile(ordered, percent).map(ms);
        Some(Self { p50: of(50)?, p90: of(90)?, p99: of(99)?, max: of(100)? })
    }
}

/// To the microsecond.
fn ms(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1_000_000.0).round() / 1000.0
}
