//! Tenures: the ticks of one worker under different tokens never interleave. That shows two holders
//! at a time even when no ID came out twice by luck.

use std::collections::BTreeMap;

use frazil_id::{Id, Layout};

use super::{AnswerSummary, describe};
use crate::history::ProcessRun;
use crate::verdict::Verdict;

/// What each (worker, token) was seen to use.
#[derive(Debug, Default)]
pub(super) struct Tenures {
    workers: BTreeMap<u64, BTreeMap<u64, Tenure>>,
}

#[derive(Clone, Copy, Debug)]
struct Tenure {
    process_run: ProcessRun,
    first_tick: u64,
    last_tick: u64,
    /// An interleaving is told once.
    is_told: bool,
}

impl Tenures {
    pub(super) fn len(&self) -> u64 {
        self.workers.values().map(|tokens| tokens.len() as u64).sum()
    }

    pub(super) fn add(&mut self, layout: &Layout, summary: &AnswerSummary, verdict: &mut Verdict) {
        let Some(token) = summary.token else { return };
        let tick = |id: u64| Id::from_u64(id).parts(layout).map_or(0, |parts| parts.tick);
        let (first, last) = (tick(summary.first), tick(summary.last));
        let tokens = self.workers.entry(summary.worker).or_default();
        let process_run = summary.process_run;
        let tenure = tokens.entry(token).or_insert(Tenure {
            process_run,
            first_tick: first,
            last_tick: last,
            is_told: false,
        });
        tenure.first_tick = tenure.first_tick.min(first);
        tenure.last_tick = tenure.last_tick.max(last);
        if tenure.is_told {
            return;
        }
        let mut told = Vec::new();
        if tenure.process_run != process_run {
            let (one, other) = (tenure.process_run, process_run);
            told.push(("token", format!("one token of two lives, {one:?} and {other:?}")));
        }
        let this = *tenure;
        if let Some((earlier, before)) = tokens.range(..token).next_back()
            && before.last_tick >= this.first_tick
        {
            told.push(("tenure", interleaved(*earlier, before, token, &this)));
        }
        if let Some((later, after)) = tokens.range(token + 1..).next()
            && this.last_tick >= after.first_tick
        {
            told.push(("tenure", interleaved(token, &this, *later, after)));
        }
        for (oracle, text) in told {
            verdict.find(oracle, format!("{text}; seen with {}", describe(summary)));
            if let Some(tenure) = tokens.get_mut(&token) {
                tenure.is_told = true;
            }
        }
    }
}

fn interleaved(early: u64, one: &Tenure, late: u64, other: &Tenure) -> String {
    format!(
        "ticks {} to {} under token {early} ({:?}) reach into {} to {} under token {late} ({:?})",
        one.first_tick,
        one.last_tick,
        one.process_run,
        other.first_tick,
        other.last_tick,
        other.process_run
    )
}
