//! The result of a measurement, as it is printed and kept.

use std::collections::BTreeMap;

use frazil_wire::printable;
use indicatif::{HumanBytes, HumanCount};
use serde::{Deserialize, Serialize};

use crate::check::Verdict;
use crate::error::Error;
use crate::plan::Plan;
use crate::tally::Tally;
use crate::target::Target;
use crate::verify::Verified;

/// The form of the object: a later one that means something else has another number.
pub(crate) const FORM: u32 = 1;
/// A verifier that connections waited for longer than this part of their time was in the way.
const STALL_MAX: f64 = 0.01;

/// One measurement.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Report {
    /// The form of this object.
    pub(crate) frazil_bench: u32,
    pub(crate) config: Config,
    /// How fast it was.
    pub results: Results,
    /// Of each request, from when it was due; none for the library.
    pub(crate) latency_us: Option<Latency>,
    /// Where requests were sent at a rate.
    pub(crate) schedule: Option<Schedule>,
    /// Requests that failed, by what went wrong.
    pub errors: BTreeMap<String, u64>,
    pub(crate) target: Option<Target>,
    pub(crate) generator: Generator,
    pub(crate) verify: Option<Verify>,
    /// One for each second.
    pub samples: Vec<Sample>,
    /// Where the server gave nothing any more when the time was up.
    #[serde(default)]
    pub(crate) outage: Option<Outage>,
}

/// What was measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Config {
    /// `library`, or the server's address.
    pub(crate) target: String,
    pub(crate) request: String,
    /// The node and its version, if it told them.
    pub(crate) node: Option<String>,
    pub(crate) version: Option<String>,
    pub(crate) layout: String,
    pub(crate) batch: u64,
    pub(crate) scope: Option<String>,
    pub(crate) connections: Option<u64>,
    pub(crate) threads: u64,
    pub(crate) rate: Option<u64>,
    pub(crate) duration_seconds: f64,
    pub(crate) warmup_seconds: f64,
    /// What measured, and on which machine.
    #[serde(default)]
    pub(crate) build: Option<String>,
    #[serde(default)]
    pub(crate) host: Option<String>,
}

/// How fast it was.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Results {
    /// How long was measured.
    pub seconds: f64,
    /// Whether somebody ended it before its time.
    pub ended_early: bool,
    /// Requests that were answered.
    pub requests: u64,
    /// IDs of these answers.
    pub ids: u64,
    /// Answered requests in a second.
    pub requests_per_second: f64,
    /// IDs in a second.
    pub ids_per_second: f64,
    /// Of what the layout allows one worker; for the library alone.
    pub share_of_cap: Option<f64>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Latency {
    pub(crate) mean: f64,
    pub(crate) p50: f64,
    pub(crate) p90: f64,
    pub(crate) p99: f64,
    pub(crate) p99_9: f64,
    pub(crate) max: f64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Schedule {
    pub(crate) requests_per_second: u64,
    /// How late a request was sent at the most.
    pub(crate) behind_max_ms: f64,
    /// Requests that were due and never sent; among the latencies as the time until the end.
    pub(crate) unsent: u64,
}

/// A server that was gone, or refused everything, when the time was up.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Outage {
    /// When the last request succeeded, since the measurement began.
    pub(crate) since_seconds: f64,
    /// What it is counted as.
    pub(crate) error: String,
    pub(crate) why: String,
}

/// What this command itself used.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Generator {
    pub(crate) cpu_seconds: f64,
    pub(crate) cores: f64,
    pub(crate) cpu_ns_per_id: Option<f64>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Verify {
    #[serde(flatten)]
    pub(crate) verdict: Verdict,
    /// CPU time of the check.
    pub(crate) cpu_seconds: f64,
    /// How long connections waited for it, all together.
    pub(crate) stalled_seconds: f64,
    /// Whether the rate was that of the check.
    pub(crate) is_bottleneck: bool,
}

/// One second.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Sample {
    /// When it ended, since the measurement began.
    pub at_seconds: f64,
    /// How long it really was.
    pub seconds: f64,
    /// Requests that were answered.
    pub requests: u64,
    /// IDs of these answers.
    pub ids: u64,
    /// Requests that failed.
    pub errors: u64,
    /// IDs in a second.
    pub ids_per_second: f64,
    /// What half of the requests took at the most.
    pub p50_us: Option<f64>,
    /// What 99 of 100 requests took at the most.
    pub p99_us: Option<f64>,
}

impl Sample {
    #[expect(clippy::cast_precision_loss, reason = "a rate is not exact to 2^-53")]
    pub(crate) fn new(tally: &Tally, at_seconds: f64, seconds: f64) -> Self {
        let quantile = |part| (tally.requests > 0).then(|| micros(tally, part));
        Self {
            at_seconds,
            seconds,
            requests: tally.requests,
            ids: tally.ids,
            errors: tally.errors(),
            ids_per_second: tally.ids as f64 / seconds,
            p50_us: quantile(0.5),
            p99_us: quantile(0.99),
        }
    }
}

impl Latency {
    /// Nothing is known where nothing was answered.
    pub(crate) fn of(tally: &Tally) -> Option<Self> {
        (tally.requests > 0).then(|| Self {
            mean: tally.latency.mean() / 1000.0,
            p50: micros(tally, 0.5),
            p90: micros(tally, 0.9),
            p99: micros(tally, 0.99),
            p99_9: micros(tally, 0.999),
            max: micros(tally, 1.0),
        })
    }
}

fn micros(tally: &Tally, part: f64) -> f64 {
    tally.quantile(part).as_secs_f64() * 1e6
}

impl Schedule {
    pub(crate) fn of(plan: &Plan, tally: &Tally) -> Option<Self> {
        plan.rate.map(|requests_per_second| Self {
            requests_per_second,
            behind_max_ms: tally.behind.as_secs_f64() * 1000.0,
            unsent: tally.unsent,
        })
    }
}

impl Verify {
    /// What came of a check of what so many connections received in so many seconds.
    #[expect(clippy::cast_precision_loss, reason = "there are few connections")]
    pub(crate) fn of(verified: Verified, connections: u64, seconds: f64) -> Self {
        let stalled_seconds = verified.stalled.as_secs_f64();
        Self {
            verdict: verified.verdict,
            cpu_seconds: verified.cpu.as_secs_f64(),
            stalled_seconds,
            is_bottleneck: stalled_seconds > STALL_MAX * seconds * connections as f64,
        }
    }

    /// The verdict in a line.
    pub(crate) fn line(&self) -> String {
        let (verdict, checked) = (&self.verdict, HumanCount(self.verdict.ids));
        if verdict.faults() == 0 {
            return format!("no duplicates, order holds: {checked} IDs checked");
        }
        format!(
            "{} duplicates, {} out of order, {} wrong answers: {checked} IDs checked",
            HumanCount(verdict.duplicates),
            HumanCount(verdict.out_of_order),
            HumanCount(verdict.wrong_answers)
        )
    }
}

impl Report {
    /// A measurement that was written as JSON.
    ///
    /// # Errors
    ///
    /// It is none, or one of a form that is not known here.
    pub fn from_json(text: &[u8]) -> Result<Self, Error> {
        let report: Self = serde_json::from_slice(text).map_err(|error| {
            Error::usage(format_args!(
                "is no measurement: {error}; write one with `frazil bench --json`"
            ))
        })?;
        match report.frazil_bench {
            FORM => Ok(report),
            other => Err(Error::usage(format_args!(
                "has the form {other}, and this command knows {FORM}"
            ))),
        }
    }

    /// What was measured, in a few words.
    pub fn title(&self) -> String {
        let Config { target, request, batch, .. } = &self.config;
        format!("{} ({}), batch {batch}", printable(target), printable(request))
    }

    /// Whether all is well: what is not, otherwise.
    ///
    /// # Errors
    ///
    /// The IDs are not what they must be, nothing was answered, or the server was gone in the end.
    pub fn verdict(&self) -> Result<(), Error> {
        if self.verify.as_ref().is_some_and(|verify| verify.verdict.faults() > 0) {
            let why = "the IDs are not what they must be: see the findings, and the node's log";
            return Err(Error::Wrong(why.to_owned()));
        }
        if self.results.ended_early {
            return Err(Error::Interrupted);
        }
        if self.results.requests == 0 {
            let errors: Vec<_> = self.errors.keys().map(String::as_str).collect();
            let why = match errors.is_empty() {
                true => "no answer came within the time: measure for longer, or ask for fewer IDs",
                false => "no request succeeded: look at the node's log and at `frazil doctor`",
            };
            let seen =
                if errors.is_empty() { String::new() } else { format!(" ({})", errors.join(", ")) };
            return Err(Error::Unavailable(format!("{why}{seen}")));
        }
        match &self.outage {
            None => Ok(()),
            Some(outage) => Err(Error::Unavailable(format!(
                "{}. No request succeeded after {:.1} s of the measurement, so its numbers are those \
                 of an outage",
                outage.why, outage.since_seconds
            ))),
        }
    }

    /// What people read: a name and what there is to say, for each line.
    pub fn lines(&self) -> Vec<(&'static str, String)> {
        let mut lines = vec![("target", self.heading()), ("rate", self.rate())];
        lines.extend(self.latency_us.as_ref().map(|latency| ("latency", latency.line())));
        lines.extend(self.schedule.as_ref().map(|schedule| ("schedule", schedule.line())));
        if self.config.connections.is_some() {
            lines.push(("errors", errors_line(&self.errors)));
            lines.extend(self.outage.as_ref().map(|outage| ("outage", outage.line())));
            let unknown = "unknown: name its process with --pid or its metrics with --metrics";
            let used = self.target.as_ref().map_or_else(|| unknown.to_owned(), Target::line);
            lines.push(("server", used));
        }
        lines.push(("generator", self.generator_line()));
        if let Some(verify) = &self.verify {
            lines.push(("verified", verify.line()));
            lines.extend(verify.verdict.findings.iter().map(|found| ("finding", found.clone())));
            if verify.is_bottleneck {
                let waited = format!("{:.2} s", verify.stalled_seconds);
                let why = "the check was the bottleneck: without --verify it may be faster";
                lines.push(("note", format!("{why} (waited {waited} for it)")));
            }
        }
        lines
    }

    fn heading(&self) -> String {
        let config = &self.config;
        let threads = count(config.threads, "thread");
        let by = match config.connections {
            Some(connections) => format!("{} on {threads}", count(connections, "connection")),
            None => threads,
        };
        format!(
            "{} ({}), {} a request, {by}",
            config.target,
            config.request,
            count(config.batch, "ID")
        )
    }

    fn rate(&self) -> String {
        let results = &self.results;
        let early = if results.ended_early { ", ended early" } else { "" };
        let cap = results
            .share_of_cap
            .map(|share| format!(", {:.2} % of the layout's cap", share * 100.0));
        format!(
            "{} IDs/s, {} requests/s{} ({} IDs in {:.3} s{early})",
            rate_text(results.ids_per_second),
            rate_text(results.requests_per_second),
            cap.unwrap_or_default(),
            HumanCount(results.ids),
            results.seconds
        )
    }

    fn generator_line(&self) -> String {
        let Generator { cores, cpu_ns_per_id, .. } = &self.generator;
        let each = cpu_ns_per_id.map(|ns| format!(", {} ns an ID", decimal(ns)));
        format!("{cores:.2} cores{}", each.unwrap_or_default())
    }
}

impl Latency {
    fn line(&self) -> String {
        let Self { mean, p50, p90, p99, p99_9, max } = self;
        let parts = [
            ("mean", mean),
            ("p50", p50),
            ("p90", p90),
            ("p99", p99),
            ("p99.9", p99_9),
            ("max", max),
        ];
        parts.map(|(name, us)| format!("{name} {}", duration_text(*us))).join("  ")
    }
}

impl Schedule {
    fn line(&self) -> String {
        let (rate, behind) = (HumanCount(self.requests_per_second), self.behind_max_ms * 1000.0);
        let unsent = match self.unsent {
            0 => "all were sent".to_owned(),
            unsent => format!(
                "{} that were due were never sent, and count as the time until the end: the rate is \
                 too high",
                HumanCount(unsent)
            ),
        };
        format!("{rate} requests/s intended; at most {} behind; {unsent}", duration_text(behind))
    }
}

impl Target {
    fn line(&self) -> String {
        let request = self.cpu_us_per_request.map(|us| format!(", {} us a request", decimal(us)));
        let id = self.cpu_ns_per_id.map(|ns| format!(", {} ns an ID", decimal(ns)));
        format!(
            "{:.2} cores{}{}; memory {}, at most {}, at the end {} (by its {})",
            self.cores,
            request.unwrap_or_default(),
            id.unwrap_or_default(),
            HumanBytes(self.rss_start_bytes),
            HumanBytes(self.rss_peak_bytes),
            HumanBytes(self.rss_end_bytes),
            self.source
        )
    }
}

impl Outage {
    /// When, and why.
    fn line(&self) -> String {
        format!("no request succeeded after {:.3} s: {}", self.since_seconds, self.error)
    }
}

fn errors_line(errors: &BTreeMap<String, u64>) -> String {
    if errors.is_empty() {
        return "none".to_owned();
    }
    let each: Vec<_> = errors.iter().map(|(why, n)| format!("{why} {}", HumanCount(*n))).collect();
    format!("{}: {}", HumanCount(errors.values().sum()), each.join(", "))
}

fn count(number: u64, thing: &str) -> String {
    format!("{} {thing}{}", HumanCount(number), if number == 1 { "" } else { "s" })
}

/// A time in the unit that suits it.
pub fn duration_text(us: f64) -> String {
    match us {
        us if us < 1000.0 => format!("{us:.0} us"),
        us if us < 1_000_000.0 => format!("{:.2} ms", us / 1000.0),
        us => format!("{:.2} s", us / 1_000_000.0),
    }
}

/// A rate without its fraction.
pub fn rate_text(rate: f64) -> String {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it saturates")]
    let rate = rate.round() as u64;
    HumanCount(rate).to_string()
}

/// Two digits after the point where they say something.
fn decimal(number: f64) -> String {
    if number < 1000.0 { format!("{number:.2}") } else { rate_text(number) }
}
