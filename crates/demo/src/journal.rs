//! The events of a demonstration, and what follows from them: pure.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use frazil_coord::Token;
use frazil_election::processor::Step;

use crate::stage::{Rest, job_name};

/// Lines of news that are kept.
const NEWS_MAX: usize = 64;

/// Something that happened, at a boot time.
#[derive(Clone, Debug)]
pub(crate) enum Note {
    /// A step of a job on a node.
    Job { node: usize, job: String, token: Token, step: Step },
    /// A node is in another condition.
    Node { node: usize, condition: Condition },
    /// What follows belongs to this phase.
    Phase(String),
    /// The phase is over: all jobs run, evenly.
    Settled,
    /// Jobs did not come to rest in time.
    Unsettled,
}

/// How a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Condition {
    Down,
    Up,
    Stopping,
}

/// Everything that is known at a moment.
#[derive(Clone, Debug)]
pub(crate) struct Journal {
    pub(crate) title: String,
    pub(crate) nodes: Vec<Node>,
    pub(crate) jobs: BTreeMap<String, Job>,
    pub(crate) phases: Vec<Phase>,
    pub(crate) news: VecDeque<(Duration, String)>,
    pub(crate) began: Duration,
    pub(crate) now: Duration,
    /// Two nodes that ran one job at a time, which must never be.
    pub(crate) overlaps: usize,
    /// How often a node came up.
    starts: usize,
}

/// A node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) name: String,
    pub(crate) condition: Condition,
}

/// A job, and where it runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Job {
    /// The node that runs it.
    pub(crate) on: Option<usize>,
    /// Since when it is there, or nowhere.
    pub(crate) since: Duration,
    pub(crate) token: Token,
    /// When it last stopped.
    stopped: Option<Duration>,
}

/// A part of the demonstration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Phase {
    pub(crate) name: String,
    pub(crate) began: Duration,
    pub(crate) ended: Option<Duration>,
    /// How long jobs were without a leader, as they moved.
    pub(crate) gaps: Vec<Duration>,
    pub(crate) is_settled: bool,
}

impl Journal {
    pub(crate) fn new(title: String, nodes: usize, jobs: usize, now: Duration) -> Self {
        let node = |index: usize| Node { name: node_name(index), condition: Condition::Down };
        Self {
            title,
            nodes: (0..nodes).map(node).collect(),
            jobs: (0..jobs).map(|index| (job_name(index), Job::default())).collect(),
            phases: Vec::new(),
            news: VecDeque::new(),
            began: now,
            now,
            overlaps: 0,
            starts: 0,
        }
    }

    pub(crate) fn note(&mut self, note: Note, at: Duration) {
        self.now = self.now.max(at);
        match note {
            Note::Job { node, job, token, step } => self.step(node, &job, token, &step, at),
            Note::Node { node, condition } => {
                self.nodes[node].condition = condition;
                self.starts += usize::from(condition == Condition::Up);
                let name = &self.nodes[node].name;
                self.tell(
                    at,
                    match condition {
                        Condition::Up => format!("{name} is up"),
                        Condition::Stopping => format!("{name} stops"),
                        Condition::Down => format!("{name} is down"),
                    },
                );
            }
            Note::Phase(name) => {
                self.end_phase(at, false);
                self.tell(at, name.clone());
                self.phases.push(Phase { name, began: at, ..Phase::default() });
            }
            Note::Settled => {
                self.end_phase(at, true);
                self.tell(at, "all jobs run, evenly".to_owned());
            }
            Note::Unsettled => {
                self.end_phase(at, false);
                self.tell(at, "the jobs did not come to rest".to_owned());
            }
        }
    }

    fn step(&mut self, node: usize, name: &str, token: Token, step: &Step, at: Duration) {
        let Some(job) = self.jobs.get_mut(name) else { return };
        match step {
            Step::Started => {
                self.overlaps += usize::from(job.on.is_some_and(|on| on != node));
                let gap = job.stopped.take().map(|stopped| at.saturating_sub(stopped));
                *job = Job { on: Some(node), since: at, token, stopped: None };
                let on = &self.nodes[node].name;
                let line = match gap {
                    Some(gap) => format!("{name} moved to {on} in {}", milliseconds(gap)),
                    None => format!("{name} started on {on}"),
                };
                if let (Some(gap), Some(phase)) = (gap, self.phases.last_mut()) {
                    phase.gaps.push(gap);
                }
                self.tell(at, line);
            }
            // What is told of an older run than the last is stale.
            Step::Stopped { .. } if token >= job.token => {
                (job.on, job.since, job.stopped) = (None, at, Some(at));
            }
            _ => {}
        }
    }

    fn end_phase(&mut self, at: Duration, is_settled: bool) {
        if let Some(phase) = self.phases.last_mut().filter(|phase| phase.ended.is_none()) {
            (phase.ended, phase.is_settled) = (Some(at), is_settled);
        }
    }

    fn tell(&mut self, at: Duration, line: String) {
        self.news.push_back((at, line));
        if self.news.len() > NEWS_MAX {
            self.news.pop_front();
        }
    }

    /// How many jobs each node runs.
    pub(crate) fn loads(&self) -> Vec<usize> {
        let mut loads = vec![0; self.nodes.len()];
        for on in self.jobs.values().filter_map(|job| job.on) {
            loads[on] += 1;
        }
        loads
    }

    /// For the stage to wait for.
    pub(crate) fn rest(&self) -> Rest {
        Rest { starts: self.starts, is_settled: self.is_settled() }
    }

    /// Whether all jobs run on the nodes that are up, and none has two more than another.
    pub(crate) fn is_settled(&self) -> bool {
        let loads = self.loads();
        let up = || {
            let nodes = self.nodes.iter().zip(&loads);
            nodes.filter(|(node, _)| node.condition == Condition::Up).map(|(_, load)| *load)
        };
        let (least, most) = (up().min().unwrap_or(0), up().max().unwrap_or(0));
        up().sum::<usize>() == self.jobs.len() && most - least <= 1
    }

    /// All gaps of all restarts, in order.
    pub(crate) fn gaps(&self) -> Vec<Duration> {
        let mut gaps: Vec<_> = self.phases.iter().flat_map(|phase| phase.gaps.clone()).collect();
        gaps.sort_unstable();
        gaps
    }
}

pub(crate) fn node_name(index: usize) -> String {
    format!("node-{}", index + 1)
}

/// The value that this many of a hundred do not exceed, of values in order.
pub(crate) fn percentile(ordered: &[Duration], percent: usize) -> Option<Duration> {
    let rank = (ordered.len() * percent).div_ceil(100).max(1);
    ordered.get(rank - 1).copied()
}

/// A duration in milliseconds, as people read it.
pub(crate) fn milliseconds(duration: Duration) -> String {
    format!("{:.1} ms", duration.as_secs_f64() * 1000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn job(node: usize, token: u64, step: Step) -> Note {
        Note::Job { node, job: job_name(0), token: Token(token), step }
    }

    fn up(node: usize) -> Note {
        Note::Node { node, condition: Condition::Up }
    }

    #[test]
    fn a_gap_is_from_a_stop_to_the_next_start_and_belongs_to_its_phase() {
        let mut journal = Journal::new(String::new(), 2, 1, ms(0));
        journal.note(Note::Phase("start".into()), ms(0));
        journal.note(up(0), ms(0));
        journal.note(job(0, 1, Step::Started), ms(10));
        assert!(journal.is_settled() && journal.gaps().is_empty(), "a first start is no gap");
        journal.note(Note::Settled, ms(20));
        journal.note(Note::Phase("restart".into()), ms(30));
        journal.note(job(0, 1, Step::Stopped { aborted: false }), ms(100));
        assert!(!journal.is_settled());
        journal.note(job(1, 2, Step::Started), ms(107));
        journal.note(job(0, 1, Step::Stopped { aborted: false }), ms(108));
        assert_eq!(journal.loads(), [0, 1], "what is told late of an earlier run changes nothing");
        assert_eq!((journal.gaps(), journal.overlaps), (vec![ms(7)], 0));
        assert_eq!(journal.phases[1].gaps, [ms(7)]);
        assert!(!journal.is_settled(), "the node that runs it is not up");
        journal.note(up(1), ms(110));
        assert!(journal.is_settled());
    }

    #[test]
    fn two_that_run_one_job_at_a_time_are_found_out() {
        let mut journal = Journal::new(String::new(), 2, 1, ms(0));
        journal.note(job(0, 1, Step::Started), ms(10));
        journal.note(job(1, 2, Step::Started), ms(20));
        assert_eq!(journal.overlaps, 1);
    }

    #[test]
    fn percentiles_are_values_that_were_measured() {
        let gaps: Vec<_> = (1..=29).map(ms).collect();
        let of = |percent| percentile(&gaps, percent).unwrap();
        assert_eq!((of(50), of(90), of(99), of(100)), (ms(15), ms(27), ms(29), ms(29)));
        assert_eq!(percentile(&gaps[..1], 50), Some(ms(1)));
        assert_eq!(percentile(&[], 50), None);
    }
}
