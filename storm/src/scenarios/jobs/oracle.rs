//! What must be true of everything that workers said, whatever was done to them.

use std::collections::BTreeMap;
use std::time::Duration;

use super::steps::{History, ProcessRun, Tenure, Write};
use crate::verdict::Verdict;

/// A process that was frozen, and the last moment before that which it told of: when its work stops
/// after it woke up, it has not run all the while.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frozen {
    pub(super) process_run: ProcessRun,
    pub(super) last: Duration,
}

/// How often something was seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Observed {
    pub(super) tenures: u64,
    pub(super) accepted: u64,
    pub(super) refused: u64,
}

/// Checks all of it.
pub(super) fn check(history: &History, frozen: &[Frozen], verdict: &mut Verdict) -> Observed {
    for failure in &history.failures {
        verdict.find("work does not fail", failure.clone());
    }
    owners(history, verdict);
    runs(history, frozen, verdict);
    let mut jobs = BTreeMap::<&str, Vec<&Write>>::new();
    for write in &history.writes {
        jobs.entry(&write.tenure.job).or_default().push(write);
    }
    for writes in jobs.values() {
        beliefs(writes, verdict);
        fence(writes, verdict);
        refusals(writes, verdict);
    }
    let refused = history.writes.iter().filter(|write| write.refused_for.is_some()).count() as u64;
    let accepted = history.writes.len() as u64 - refused;
    Observed { tenures: history.works.len() as u64, accepted, refused }
}

/// A token of a job is of one process run alone.
fn owners(history: &History, verdict: &mut Verdict) {
    let mut tenures = history.works.keys().peekable();
    while let (Some(one), Some(other)) = (tenures.next(), tenures.peek()) {
        if one.job == other.job && one.token == other.token {
            verdict.find("token", format!("{} is {} too", describe(one), describe(other)));
        }
    }
}

/// The work of a job runs in one place at a time. That of a process which was frozen or killed has ended
/// when it was last heard of.
fn runs(history: &History, frozen: &[Frozen], verdict: &mut Verdict) {
    let mut jobs = BTreeMap::<&str, Vec<(Duration, Duration, &Tenure)>>::new();
    for (tenure, work) in &history.works {
        let Some(begin) = work.started else { continue };
        let last = history.last.get(&tenure.process_run).copied().unwrap_or(begin);
        let mut end = work.stopped.unwrap_or(last);
        for frozen in frozen.iter().filter(|frozen| frozen.process_run == tenure.process_run) {
            if begin <= frozen.last {
                end = end.min(frozen.last);
            }
        }
        jobs.entry(&tenure.job).or_default().push((begin, end.max(begin), tenure));
    }
    for mut spans in jobs.into_values() {
        spans.sort_unstable();
        let mut longest: Option<(Duration, &Tenure)> = None;
        for (begin, end, tenure) in spans {
            if let Some((until, other)) = longest
                && begin < until
            {
                let common = until.min(end) - begin;
                let (one, other) = (describe(tenure), describe(other));
                verdict.find("a job runs once", format!("{one} and {other}: both for {common:?}"));
            }
            longest = longest.max(Some((end, tenure)));
        }
    }
}

/// Nobody is excused here: who says that it leads looked after the moment that it names. In the order
/// of their tokens, one leadership of a job ends before the next begins.
fn beliefs(writes: &[&Write], verdict: &mut Verdict) {
    let mut spans = BTreeMap::<&Tenure, (Duration, Duration)>::new();
    for write in writes.iter().filter(|write| write.led) {
        let span = spans.entry(&write.tenure).or_insert((write.asked, write.asked));
        *span = (span.0.min(write.asked), span.1.max(write.asked));
    }
    // Tenures of one job are in the order of their tokens.
    let mut earlier: Option<(Duration, Duration, &Tenure)> = None;
    for (tenure, (begin, end)) in spans {
        if let Some((first, last, before)) = earlier
            && begin <= last
        {
            let oracle = if end < first { "token" } else { "belief" };
            let (one, other) = (describe(before), describe(tenure));
            let text = format!("{one} led until {last:?}, {other} from {begin:?} to {end:?}");
            verdict.find(oracle, text);
        }
        earlier = Some((begin, end, tenure));
    }
}

/// No write is accepted that was set out for after one with a higher token was.
fn fence(writes: &[&Write], verdict: &mut Verdict) {
    let accepted = writes.iter().filter(|write| write.refused_for.is_none());
    let mut by_asked: Vec<_> = accepted.copied().collect();
    let mut by_answer = by_asked.clone();
    by_asked.sort_by_key(|write| write.asked);
    by_answer.sort_by_key(|write| write.at);
    let (mut answered, mut highest) = (by_answer.into_iter().peekable(), None::<&Write>);
    for write in by_asked {
        while let Some(earlier) = answered.next_if(|earlier| earlier.at < write.asked) {
            if highest.is_none_or(|highest| earlier.tenure.token > highest.tenure.token) {
                highest = Some(earlier);
            }
        }
        if let Some(highest) = highest.filter(|highest| highest.tenure.token > write.tenure.token) {
            let (one, other) = (describe(&write.tenure), describe(&highest.tenure));
            verdict.find("fence", format!("a write by {one} was accepted after one by {other}"));
        }
    }
}

/// Who is refused has a lower token than somebody else, and does not believe in it any more.
fn refusals(writes: &[&Write], verdict: &mut Verdict) {
    let mut refused = BTreeMap::<&Tenure, Duration>::new();
    for write in writes {
        let Some(highest) = write.refused_for else { continue };
        if highest <= write.tenure.token {
            let who = describe(&write.tenure);
            verdict.find("fence", format!("{who} was refused for {highest}"));
        }
        let first = refused.entry(&write.tenure).or_insert(write.at);
        *first = (*first).min(write.at);
    }
    for write in writes.iter().filter(|write| write.led) {
        if refused.get(&write.tenure).is_some_and(|refused| *refused < write.asked) {
            let who = describe(&write.tenure);
            verdict.find("belief", format!("{who} believed that it leads after it was refused"));
        }
    }
}

fn describe(tenure: &Tenure) -> String {
    let Tenure { job, token, process_run } = tenure;
    format!("{job} with {token} on worker {} (process {})", process_run.worker, process_run.process)
}

#[cfg(test)]
mod tests;
