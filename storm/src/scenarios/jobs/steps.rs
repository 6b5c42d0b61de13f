//! What processes with jobs say (`jobs_node`), line by line.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use serde::Deserialize;

/// One process of a worker: one that is started again is another run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ProcessRun {
    pub(super) worker: usize,
    pub(super) process: u32,
}

/// A leadership of a job, in a run of a process.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Tenure {
    pub(super) job: String,
    pub(super) token: u64,
    pub(super) process_run: ProcessRun,
}

/// When its work began and ended. All times are since the machine was started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Work {
    pub(super) started: Option<Duration>,
    pub(super) stopped: Option<Duration>,
}

/// An attempt to write.
#[derive(Clone, Debug)]
pub(super) struct Write {
    pub(super) tenure: Tenure,
    /// When it set out to; whether it led by its own clock was looked at afterwards.
    pub(super) asked: Duration,
    pub(super) led: bool,
    /// When it had the answer.
    pub(super) at: Duration,
    /// The token that it was refused for.
    pub(super) refused_for: Option<u64>,
}

/// Everything that was said so far.
#[derive(Clone, Debug, Default)]
pub(super) struct History {
    pub(super) works: BTreeMap<Tenure, Work>,
    pub(super) writes: Vec<Write>,
    /// Work that failed, which it never should.
    pub(super) failures: Vec<String>,
    /// The last moment that a run told of.
    pub(super) last: BTreeMap<ProcessRun, Duration>,
}

/// A line as it is printed.
#[derive(Debug, Deserialize)]
struct Line {
    step: String,
    process: Option<u32>,
    job: Option<String>,
    token: Option<String>,
    asked_ms: Option<f64>,
    led: Option<bool>,
    highest: Option<String>,
    error: Option<String>,
    at_ms: f64,
}

impl History {
    /// Takes a line of a worker whose present run is given; the run that it is of. Whatever else a
    /// process prints is left alone, and what is missing in a line is trouble.
    pub(super) fn take(
        &mut self,
        worker: usize,
        process_run: Option<ProcessRun>,
        text: &str,
    ) -> io::Result<Option<ProcessRun>> {
        if !text.starts_with("{\"instance\":") {
            return Ok(process_run);
        }
        let trouble = |why: &str| io::Error::other(format!("{why}: {text}"));
        let line: Line = serde_json::from_str(text).map_err(|error| trouble(&error.to_string()))?;
        let at = time(Some(line.at_ms))?;
        if line.step == "up" {
            let process = line.process.ok_or_else(|| trouble("no process"))?;
            let process_run = ProcessRun { worker, process };
            self.last.insert(process_run, at);
            return Ok(Some(process_run));
        }
        let process_run = process_run.ok_or_else(|| trouble("said before up"))?;
        let last = self.last.entry(process_run).or_insert(at);
        *last = (*last).max(at);
        match line.step.as_str() {
            "down" => {}
            "missed" => return Err(trouble("steps were not printed")),
            _ => self.of_job(process_run, line, at).map_err(|error| trouble(&error.to_string()))?,
        }
        Ok(Some(process_run))
    }

    fn of_job(&mut self, process_run: ProcessRun, line: Line, at: Duration) -> io::Result<()> {
        let missing = |what: &str| io::Error::other(format!("no {what}"));
        let job = line.job.ok_or_else(|| missing("job"))?;
        let token = number(line.token.as_deref())?;
        let tenure = Tenure { job, token, process_run };
        let work = self.works.entry(tenure.clone()).or_default();
        match line.step.as_str() {
            "elected" | "cancelled" | "released" | "lost" => {}
            // Work that failed is started again; it is the same leadership.
            "started" => work.started = work.started.or(Some(at)),
            "stopped" => work.stopped = Some(at),
            "failed" => {
                let error = line.error.ok_or_else(|| missing("error"))?;
                self.failures.push(format!("{tenure:?}: {error}"));
            }
            step @ ("wrote" | "refused") => {
                let refused_for = match step {
                    "refused" => Some(number(line.highest.as_deref())?),
                    _ => None,
                };
                let led = line.led.ok_or_else(|| missing("led"))?;
                let asked = time(line.asked_ms)?;
                self.writes.push(Write { tenure, asked, led, at, refused_for });
            }
            _ => return Err(io::Error::other("a step that nobody knows")),
        }
        Ok(())
    }

    /// The jobs that processes run: those whose work has started and not stopped, under the highest token.
    pub(super) fn running(&self, process_runs: &[ProcessRun]) -> BTreeMap<String, Tenure> {
        let runs = |(tenure, work): &(&Tenure, &Work)| {
            work.started.is_some()
                && work.stopped.is_none()
                && process_runs.contains(&tenure.process_run)
        };
        // In the order of tokens, so that the highest stays.
        self.works
            .iter()
            .filter(runs)
            .map(|(tenure, _)| (tenure.job.clone(), tenure.clone()))
            .collect()
    }

    /// The first start of a job under a higher token, by somebody else.
    pub(super) fn successor(&self, lost: &Tenure) -> Option<Duration> {
        let later = self.works.iter().filter(|(tenure, _)| {
            tenure.job == lost.job
                && tenure.token > lost.token
                && tenure.process_run != lost.process_run
        });
        later.filter_map(|(_, work)| work.started).min()
    }

    /// Whether a process has said that the work of a leadership has stopped.
    pub(super) fn has_stopped(&self, tenure: &Tenure) -> bool {
        self.works.get(tenure).is_some_and(|work| work.stopped.is_some())
    }
}

fn number(text: Option<&str>) -> io::Result<u64> {
    text.and_then(|text| text.parse().ok()).ok_or_else(|| io::Error::other("no token"))
}

fn time(ms: Option<f64>) -> io::Result<Duration> {
    let ms = ms.ok_or_else(|| io::Error::other("no time"))?;
    Duration::try_from_secs_f64(ms / 1e3).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;

    const UP: &str = r#"{"instance":"w","step":"up","process":7,"at_ms":1.0}"#;
    const LIFE: ProcessRun = ProcessRun { worker: 2, process: 7 };

    fn said(lines: &[&str]) -> io::Result<History> {
        let (mut history, mut process_run) = (History::default(), None);
        for line in lines {
            process_run = history.take(2, process_run, line)?;
        }
        Ok(history)
    }

    fn line(rest: &str) -> String {
        format!("{{\"instance\":\"w\",\"job\":\"job-01\",\"token\":\"12\",{rest}}}")
    }

    #[test]
    fn what_is_printed_is_read_and_other_lines_are_left_alone() {
        let started = line(r#""step":"started","at_ms":2.5"#);
        let wrote = line(r#""step":"wrote","asked_ms":3.0,"led":true,"at_ms":4.0"#);
        let refused =
            line(r#""step":"refused","asked_ms":5.0,"led":false,"highest":"13","at_ms":6.0"#);
        let history = said(&["WARN slow", UP, &started, &wrote, &refused]).unwrap();
        let tenure = Tenure { job: "job-01".to_owned(), token: 12, process_run: LIFE };
        assert_eq!(history.running(&[LIFE])["job-01"], tenure);
        assert_eq!(history.last[&LIFE], Duration::from_millis(6));
        assert_eq!(history.writes[1].refused_for, Some(13));
        let stopped = line(r#""step":"stopped","aborted":false,"at_ms":7.0"#);
        let history = said(&[UP, &started, &stopped]).unwrap();
        assert!(history.running(&[LIFE]).is_empty() && history.has_stopped(&tenure));
    }

    #[test]
    fn a_line_that_lacks_something_or_tells_of_missing_ones_is_trouble() {
        let whole =
            line(r#""step":"refused","asked_ms":5.0,"led":false,"highest":"13","at_ms":6.0"#);
        assert!(said(&[UP, &whole]).is_ok());
        for part in
            ["\"asked_ms\":5.0,", "\"led\":false,", "\"highest\":\"13\",", "\"token\":\"12\","]
        {
            assert!(said(&[UP, &whole.replace(part, "")]).is_err(), "{part}");
        }
        assert!(said(&[&whole]).is_err(), "before up");
        assert!(said(&[UP, &line(r#""step":"missed","count":3,"at_ms":6.0"#)]).is_err());
        assert!(said(&[UP, &line(r#""step":"jumped","at_ms":6.0"#)]).is_err());
    }
}
