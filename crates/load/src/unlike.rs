//! In what two measurements differ beside what they measured.

use frazil_wire::printable;
use serde::Serialize;

use crate::report::{Config, Report};

/// Runs of which one is longer than this by the other are of different lengths.
const DURATION_RATIO_MAX: f64 = 1.5;

/// Something that was not the same in both.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Unlike {
    field: &'static str,
    before: String,
    after: String,
}

/// How something is found in a report.
type Field = fn(&Report) -> String;

impl Unlike {
    /// All that was not the same. The server's address is no part of it: two servers are what most
    /// people compare.
    pub(crate) fn all(before: &Report, after: &Report) -> Vec<Self> {
        let fields: [(&'static str, Field); 14] = [
            ("protocol", |report| protocol(&report.config)),
            ("request", |report| report.config.request.clone()),
            ("batch", |report| report.config.batch.to_string()),
            ("scope", |report| or_none(report.config.scope.as_ref())),
            ("layout", |report| report.config.layout.clone()),
            ("connections", |report| or_none(report.config.connections.as_ref())),
            ("threads", |report| report.config.threads.to_string()),
            ("rate", |report| or_none(report.config.rate.as_ref())),
            ("verify", |report| yes_or_no(report.verify.is_some())),
            ("ended early", |report| yes_or_no(report.results.ended_early)),
            ("outage at the end", |report| yes_or_no(report.outage.is_some())),
            ("server's version", |report| or_none(report.config.version.as_ref())),
            ("build of frazil", |report| or_none(report.config.build.as_ref())),
            ("host", |report| or_none(report.config.host.as_ref())),
        ];
        let mut unlike: Vec<Self> = fields
            .into_iter()
            .map(|(field, of)| Self { field, before: of(before), after: of(after) })
            .filter(|unlike| unlike.before != unlike.after)
            .collect();
        unlike.extend(of_lengths("duration", before, after, |config| config.duration_seconds));
        unlike.extend(of_lengths("warm-up", before, after, |config| config.warmup_seconds));
        unlike
    }

    /// For a terminal.
    pub(crate) fn line(&self) -> String {
        let (before, after) = (printable(&self.before), printable(&self.after));
        format!("the runs are unlike in {}: {before} in A, {after} in B", self.field)
    }
}

/// Spans that are much different: seconds more or less do not matter.
fn of_lengths(
    field: &'static str,
    before: &Report,
    after: &Report,
    of: fn(&Config) -> f64,
) -> Option<Unlike> {
    let (one, other) = (of(&before.config), of(&after.config));
    let (short, long) = (one.min(other), one.max(other));
    let text = |seconds: f64| format!("{seconds} s");
    (long > short * DURATION_RATIO_MAX).then(|| Unlike {
        field,
        before: text(one),
        after: text(other),
    })
}

/// The scheme of the address, which tells TLS too.
fn protocol(config: &Config) -> String {
    config.target.split_once("://").map_or("none", |(scheme, _)| scheme).to_owned()
}

fn or_none(value: Option<&impl ToString>) -> String {
    value.map_or_else(|| "none".to_owned(), ToString::to_string)
}

fn yes_or_no(is_so: bool) -> String {
    if is_so { "yes".to_owned() } else { "no".to_owned() }
}
