//! The measurements of a demonstration.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use super::journal::{Journal, Phase, percentile};

/// One object for each phase.
#[derive(Debug, Serialize)]
pub(super) struct PhaseReport<'a> {
    phase: &'a str,
    settled: bool,
    took_ms: f64,
    moves: usize,
    gap_ms: Option<Gaps>,
}

/// One object for all of it.
#[derive(Debug, Serialize)]
pub(super) struct Report<'a> {
    phase: &'static str,
    store: &'a str,
    nodes: usize,
    jobs: usize,
    running: usize,
    /// Two nodes that ran one job at a time.
    overlaps: usize,
    moves: usize,
    gap_ms: Option<Gaps>,
    balance: BTreeMap<&'a str, usize>,
}

/// How long jobs were without a leader.
#[derive(Debug, Serialize)]
struct Gaps {
    p50: f64,
    p90: f64,
    p99: f64,
    max: f64,
}

impl<'a> PhaseReport<'a> {
    pub(super) fn of(phase: &'a Phase) -> Self {
        let mut gaps = phase.gaps.clone();
        gaps.sort_unstable();
        Self {
            phase: &phase.name,
            settled: phase.is_settled,
            took_ms: ms(phase.ended.unwrap_or(phase.began).saturating_sub(phase.began)),
            moves: gaps.len(),
            gap_ms: Gaps::of(&gaps),
        }
    }
}

impl<'a> Report<'a> {
    pub(super) fn of(journal: &'a Journal, store: &'a str) -> Self {
        let (gaps, loads) = (journal.gaps(), journal.loads());
        let names = journal.nodes.iter().map(|node| node.name.as_str());
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
        }
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
