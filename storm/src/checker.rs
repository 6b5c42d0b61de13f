//! Every ID that anybody received, checked exactly.

mod order;
mod tenure;
mod unordered_ids;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use frazil_audit::IdSet;
use frazil_id::{Id, Layout};

use crate::history::{Answer, ProcessRun};
use crate::verdict::Verdict;
use tenure::Tenures;

/// Takes answers in any order; at the end knows what they break.
#[derive(Debug)]
pub(crate) struct Checker {
    /// All IDs are of one strict scope: those of all nodes are in order.
    pub(crate) is_strict: bool,
    layout: Layout,
    set: IdSet,
    tenures: Tenures,
    summaries: Vec<AnswerSummary>,
    /// IDs that went through a client.
    through_clients: u64,
    verdict: Verdict,
    /// The findings so far, for those who want to stop at the first.
    caught: Arc<AtomicU64>,
}

/// An answer without its IDs: all are of one worker, between the first and the last.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AnswerSummary {
    pub(crate) process_run: ProcessRun,
    pub(crate) connection: u32,
    pub(crate) asked: Duration,
    pub(crate) answered: Duration,
    pub(crate) token: Option<u64>,
    pub(crate) worker: u64,
    pub(crate) first: u64,
    pub(crate) last: u64,
}

impl Checker {
    pub(crate) fn new(layout: Layout, caught: Arc<AtomicU64>) -> Self {
        Self {
            is_strict: false,
            layout,
            set: IdSet::new(&layout),
            tenures: Tenures::default(),
            summaries: Vec::new(),
            through_clients: 0,
            verdict: Verdict::default(),
            caught,
        }
    }

    /// Checks one answer against all before it.
    pub(crate) fn take(&mut self, answer: &Answer) {
        let before = self.verdict.finding_count;
        if let Some(summary) = self.look(answer) {
            self.check_ids(answer, &summary);
            self.check_times(answer, &summary);
            self.tenures.add(&self.layout, &summary, &mut self.verdict);
            self.summaries.push(summary);
        }
        let found = self.verdict.finding_count - before;
        // Relaxed: a number to look at.
        self.caught.fetch_add(found, Ordering::Relaxed);
    }

    /// Everything that was broken, and the answers.
    pub(crate) fn finish(mut self) -> (Verdict, Vec<AnswerSummary>, Counts) {
        // A run of a process has one lane, and IDs of one lane are in order.
        let is_strict = self.is_strict;
        let group = |summary: &AnswerSummary| (!is_strict).then_some(summary.process_run);
        order::check(&self.summaries, group, &mut self.verdict);
        let mut workers = BTreeMap::<u64, u64>::new();
        for summary in &self.summaries {
            *workers.entry(summary.worker).or_default() += 1;
        }
        let counts = Counts {
            ids: self.set.len(),
            through_clients: self.through_clients,
            answers: self.summaries.len() as u64,
            workers: workers.len() as u64,
            tenures: self.tenures.len(),
            earliest_tick: self.ticks().min().unwrap_or(0),
            latest_tick: self.ticks().max().unwrap_or(0),
            untold: self.summaries.iter().filter(|summary| summary.token.is_none()).count() as u64,
            memory_bytes: self.set.memory_bytes() as u64,
        };
        (self.verdict, self.summaries, counts)
    }

    /// Of the first and last ID of each answer.
    fn ticks(&self) -> impl Iterator<Item = u64> {
        let ids = self.summaries.iter().flat_map(|summary| [summary.first, summary.last]);
        ids.filter_map(|id| Some(Id::from_u64(id).parts(&self.layout).ok()?.tick))
    }

    /// The shape of an answer: ascending IDs of one worker.
    fn look(&mut self, answer: &Answer) -> Option<AnswerSummary> {
        let (first, last) = (*answer.ids.first()?, *answer.ids.last()?);
        if !answer.ids.is_sorted_by(|one, other| one < other) {
            let text = format!(
                "an answer of {:?} is not ascending: {first} ... {last}",
                answer.process_run
            );
            self.verdict.find("order", text);
        }
        let worker = match Id::from_u64(first).parts(&self.layout) {
            Ok(parts) => parts.worker,
            Err(error) => {
                self.verdict.find("layout", format!("{first}: {error}"));
                return None;
            }
        };
        Some(AnswerSummary {
            process_run: answer.process_run,
            connection: answer.connection,
            asked: answer.asked,
            answered: answer.answered,
            token: answer.token,
            worker,
            first,
            last,
        })
    }

    fn check_ids(&mut self, answer: &Answer, summary: &AnswerSummary) {
        for &id in &answer.ids {
            let is_of_worker = Id::from_u64(id)
                .parts(&self.layout)
                .is_ok_and(|parts| parts.worker == summary.worker);
            if !is_of_worker {
                let text = format!("{id} came with IDs of worker {}", summary.worker);
                self.verdict.find("layout", text);
            }
            match self.set.insert(Id::from_u64(id)) {
                Ok(true) => {}
                Ok(false) => {
                    let text = self.both_sightings(id, summary);
                    self.verdict.find("unique", text);
                }
                Err(error) => self.verdict.find("layout", format!("{id}: {error}")),
            }
        }
    }

    fn both_sightings(&self, id: u64, second: &AnswerSummary) -> String {
        let earlier = self.summaries.iter().find(|earlier| {
            earlier.worker == second.worker && (earlier.first..=earlier.last).contains(&id)
        });
        let earlier = earlier.map_or("the same answer, or a client's".to_owned(), describe);
        format!("{id} twice: {earlier}; {}", describe(second))
    }

    fn check_times(&mut self, answer: &Answer, summary: &AnswerSummary) {
        let unix_ms = |id: u64| {
            let tick = Id::from_u64(id).parts(&self.layout).map_or(0, |parts| parts.tick);
            self.layout.unix_ms(tick).cast_signed()
        };
        let (first, last) = (unix_ms(summary.first), unix_ms(summary.last));
        let (behind, ahead) = (answer.asked_unix_ms - first, last - answer.answered_unix_ms);
        if behind > answer.tolerance.behind_ms {
            let text =
                format!("{} is {behind} ms in the past: {}", summary.first, describe(summary));
            self.verdict.find("truth", text);
        }
        if ahead > answer.tolerance.ahead_ms {
            let text =
                format!("{} is {ahead} ms in the future: {}", summary.last, describe(summary));
            self.verdict.find("truth", text);
        }
    }
}

/// How much was checked.
#[derive(Clone, Copy, Debug, Default, serde::Serialize)]
pub(crate) struct Counts {
    pub(crate) ids: u64,
    /// Of them, those that an application got from a client.
    pub(crate) through_clients: u64,
    pub(crate) answers: u64,
    pub(crate) workers: u64,
    pub(crate) tenures: u64,
    /// 0 if there are no IDs.
    pub(crate) earliest_tick: u64,
    pub(crate) latest_tick: u64,
    /// Answers that did not say whose they are: those over RESP.
    pub(crate) untold: u64,
    pub(crate) memory_bytes: u64,
}

pub(crate) fn describe(summary: &AnswerSummary) -> String {
    let AnswerSummary { process_run, connection, asked, answered, token, worker, first, last } =
        summary;
    let token = token.map_or("untold".to_owned(), |token| token.to_string());
    format!(
        "worker {worker}, token {token}, node {} (start {}), connection {connection}, asked {:.3} s, \
         answered {:.3} s, IDs {first} to {last}",
        process_run.node,
        process_run.start,
        asked.as_secs_f64(),
        answered.as_secs_f64()
    )
}

#[cfg(test)]
mod tests;
