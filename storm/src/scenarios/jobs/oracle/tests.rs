//! Planted histories: what is looked for is found, and nothing else.

use super::super::steps::Work;
use super::*;

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn process_run(worker: usize) -> ProcessRun {
    ProcessRun { worker, process: 10 }
}

fn tenure(worker: usize, token: u64) -> Tenure {
    Tenure { job: "job-01".to_owned(), token, process_run: process_run(worker) }
}

/// A planted history.
#[derive(Default)]
struct PlantedHistory(History);

impl PlantedHistory {
    /// Work of a worker under a token.
    fn work(mut self, worker: usize, token: u64, from: u64, to: Option<u64>) -> Self {
        let work = Work { started: Some(ms(from)), stopped: to.map(ms) };
        self.0.works.insert(tenure(worker, token), work);
        self.heard(worker, to.unwrap_or(from))
    }

    /// Something else was heard of a worker then.
    fn heard(mut self, worker: usize, at: u64) -> Self {
        let last = self.0.last.entry(process_run(worker)).or_default();
        *last = (*last).max(ms(at));
        self
    }

    /// A write that took a millisecond.
    fn write(mut self, worker: usize, token: u64, asked: u64, led: bool) -> Self {
        let (tenure, asked, at) = (tenure(worker, token), ms(asked), ms(asked + 1));
        self.0.writes.push(Write { tenure, asked, led, at, refused_for: None });
        self
    }

    fn refused(mut self, worker: usize, token: u64, asked: u64, led: bool, by: u64) -> Self {
        self = self.write(worker, token, asked, led);
        if let Some(write) = self.0.writes.last_mut() {
            write.refused_for = Some(by);
        }
        self
    }

    fn oracles(&self, frozen: &[Frozen]) -> Vec<&'static str> {
        let mut verdict = Verdict::default();
        check(&self.0, frozen, &mut verdict);
        verdict.findings.iter().map(|finding| finding.oracle).collect()
    }
}

#[test]
fn jobs_that_are_handed_over_are_let_through() {
    let plot = PlantedHistory::default()
        .work(0, 5, 10, Some(20))
        .write(0, 5, 11, true)
        .work(1, 6, 21, None)
        .write(1, 6, 22, true);
    assert!(plot.oracles(&[]).is_empty());
    let seen = check(&plot.0, &[], &mut Verdict::default());
    assert_eq!(seen, Observed { tenures: 2, accepted: 2, refused: 0 });
}

#[test]
fn work_in_two_places_at_a_time_is_found() {
    let plot = PlantedHistory::default().work(0, 5, 10, Some(30)).work(1, 6, 20, Some(40));
    assert_eq!(plot.oracles(&[]), ["a job runs once"]);
    let within = PlantedHistory::default().work(0, 5, 10, Some(50)).work(1, 6, 20, Some(30));
    assert_eq!(within.oracles(&[]), ["a job runs once"]);
    let unended = PlantedHistory::default().work(0, 5, 10, None).heard(0, 25).work(1, 6, 20, None);
    assert_eq!(unended.oracles(&[]), ["a job runs once"]);
}

#[test]
fn a_life_that_was_killed_or_frozen_ran_until_it_was_last_heard_of() {
    let killed = PlantedHistory::default().work(0, 5, 10, None).heard(0, 15).work(1, 6, 20, None);
    assert!(killed.oracles(&[]).is_empty());
    let woken = PlantedHistory::default().work(0, 5, 10, Some(30)).work(1, 6, 20, None);
    let frozen = Frozen { process_run: process_run(0), last: ms(15) };
    assert!(woken.oracles(&[frozen]).is_empty());
    assert_eq!(
        woken.oracles(&[Frozen { process_run: process_run(1), ..frozen }]),
        ["a job runs once"]
    );
    let late = PlantedHistory::default().work(0, 5, 10, Some(30)).work(1, 6, 12, None);
    assert_eq!(late.oracles(&[frozen]), ["a job runs once"], "it was not frozen yet");
}

#[test]
fn one_that_wakes_up_and_believes_is_found_although_it_was_frozen() {
    let frozen = [Frozen { process_run: process_run(0), last: ms(12) }];
    let awake = |led| {
        PlantedHistory::default()
            .work(0, 5, 10, Some(40))
            .write(0, 5, 11, true)
            .work(1, 6, 20, None)
            .write(1, 6, 21, true)
            .refused(0, 5, 30, led, 6)
    };
    assert!(awake(false).oracles(&frozen).is_empty());
    assert_eq!(awake(true).oracles(&frozen), ["belief"]);
    let stubborn = awake(false).refused(0, 5, 35, true, 6);
    assert!(stubborn.oracles(&frozen).contains(&"belief"));
}

#[test]
fn a_late_write_that_was_accepted_is_found() {
    let plot = PlantedHistory::default()
        .write(0, 5, 11, true)
        .write(1, 6, 21, true)
        .write(0, 5, 30, false);
    assert_eq!(plot.oracles(&[]), ["fence"]);
    let at_once = PlantedHistory::default().write(1, 6, 21, true).write(0, 5, 21, false);
    assert!(at_once.oracles(&[]).is_empty(), "either may have come first");
    let baseless = PlantedHistory::default().refused(1, 6, 21, false, 6);
    assert_eq!(baseless.oracles(&[]), ["fence"]);
}

#[test]
fn a_token_of_two_lives_or_one_that_falls_is_found() {
    let shared = PlantedHistory::default().work(0, 5, 10, Some(20)).work(1, 5, 30, None);
    assert_eq!(shared.oracles(&[]), ["token"]);
    let falling = PlantedHistory::default().write(0, 6, 11, true).write(1, 5, 31, true);
    assert_eq!(falling.oracles(&[]), ["token", "fence"]);
}
