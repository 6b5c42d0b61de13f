//! The output of a node, one JSON object per line.

use std::time::Duration;

use frazil_coord::Token;
use frazil_coord::internal::time::boot_time;
use frazil_election::processor::{Event, Step, StopReason};
use serde::Serialize;

/// One step of the node or of a job. What a step does not have is left out.
#[derive(Debug, Default, Serialize)]
pub(super) struct Line {
    step: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    process: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    job: Option<String>,
    /// A string: tokens exceed what a JSON number holds everywhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    aborted: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    asked_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    led: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    highest: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unfinished: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<u64>,
    at_ms: f64,
}

/// A line, and who says it.
#[derive(Debug, Serialize)]
pub(super) struct Said<'a> {
    instance: &'a str,
    #[serde(flatten)]
    line: &'a Line,
}

/// An attempt of a job to write.
#[derive(Debug)]
pub(super) struct Attempt {
    pub(super) job: String,
    pub(super) token: Token,
    /// When it set out to, in boot time; what it knew of its leadership it learned afterwards.
    pub(super) asked: Duration,
    pub(super) led: bool,
    /// The token that it was refused for.
    pub(super) highest: Option<Token>,
}

impl Line {
    pub(super) fn up() -> Self {
        let process = Some(std::process::id());
        Self { step: "up", process, at_ms: ms(boot_time()), ..Self::default() }
    }

    pub(super) fn down(unfinished: Vec<String>) -> Self {
        let unfinished = Some(unfinished);
        Self { step: "down", unfinished, at_ms: ms(boot_time()), ..Self::default() }
    }

    pub(super) fn missed(count: u64) -> Self {
        Self { step: "missed", count: Some(count), at_ms: ms(boot_time()), ..Self::default() }
    }

    pub(super) fn of(event: Event) -> Self {
        let Event { job, token, step, at, .. } = event;
        let (job, token) = (Some(job), Some(token.to_string()));
        let line = Self { job, token, at_ms: ms(at), ..Self::default() };
        match step {
            Step::Elected => Self { step: "elected", ..line },
            Step::Started => Self { step: "started", ..line },
            Step::Cancelled(why) => Self { step: "cancelled", why: Some(word(why)), ..line },
            Step::Stopped { aborted } => Self { step: "stopped", aborted: Some(aborted), ..line },
            Step::Failed(error) => Self { step: "failed", error: Some(error), ..line },
            Step::Done => Self { step: "done", ..line },
            Step::Released => Self { step: "released", ..line },
            Step::Lost => Self { step: "lost", ..line },
            // A step that came to be later.
            _ => Self { step: "other", ..line },
        }
    }

    pub(super) fn wrote(attempt: Attempt) -> Self {
        let Attempt { job, token, asked, led, highest } = attempt;
        Self {
            step: if highest.is_none() { "wrote" } else { "refused" },
            job: Some(job),
            token: Some(token.to_string()),
            asked_ms: Some(ms(asked)),
            led: Some(led),
            highest: highest.map(|highest| highest.to_string()),
            at_ms: ms(boot_time()),
            ..Self::default()
        }
    }

    pub(super) fn by<'a>(&'a self, instance: &'a str) -> Said<'a> {
        Said { instance, line: self }
    }
}

const fn word(why: StopReason) -> &'static str {
    match why {
        StopReason::Shutdown => "shutdown",
        StopReason::Expiring => "expiring",
        StopReason::Timeout => "timeout",
        StopReason::Balance => "balance",
        _ => "other",
    }
}

/// To the microsecond.
fn ms(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1_000_000.0).round() / 1000.0
}
