//! Do the durations, the workers and the layout go together?

use frazil::coord::rules::REQUEST_MAX;
use frazil::coord::{Timing, TimingError};
use frazil::{Node, StartError, fixed_worker};

use super::case::Case;
use super::report::Row;
use crate::config::Problem;
use crate::words::span;

const CHECK: &str = "timing";

/// The first relation that does not hold.
pub(super) fn clash(case: &Case) -> Option<StartError> {
    let mut node = Node::builder()
        .store_url(case.url.clone())
        .namespace(case.namespace.clone())
        .layout(case.layout)
        .timing(case.timing);
    if let Some((first, last)) = case.workers {
        node = node.workers(first..=last);
    }
    node.check().err()
}

/// What there is to say about it, unless the configuration's problems say it.
pub(super) fn row(case: &Case, clash: Option<&StartError>, problems: &[Problem]) -> Row {
    let Some(clash) = clash else { return Row::ok(CHECK, described(case)) };
    let what = clash.to_string();
    match problems.iter().any(|problem| problem.says(&what)) {
        true => Row::skipped(CHECK, "see configuration"),
        false => Row::fail(CHECK, what, fix(clash)),
    }
}

fn described(case: &Case) -> String {
    let Timing { ttl, heartbeat, outage_budget } = case.effective_timing();
    let of = if fixed_worker(&case.url).is_some() { "of a fixed worker: " } else { "" };
    let request = match case.url.hosts.is_empty() {
        true => String::new(),
        false => {
            format!(", {} for a request", span(case.url.timeout().min(ttl / 4).min(REQUEST_MAX)))
        }
    };
    format!(
        "{of}TTL {}, heartbeat {}, outage budget {}{request}",
        span(ttl),
        span(heartbeat),
        span(outage_budget)
    )
}

/// The flag that makes it right.
pub(super) fn fix(error: &StartError) -> String {
    match error {
        StartError::Timing(TimingError::HeartbeatTooLong(timing)) => {
            format!("--heartbeat {}, or --ttl {}", span(timing.ttl / 3), span(timing.heartbeat * 3))
        }
        StartError::Timing(TimingError::TooShort(_)) => "--ttl 30s --heartbeat 10s".into(),
        StartError::Timing(TimingError::BudgetTooShort(timing)) => {
            format!("--outage-budget {}", span(timing.ttl * 3))
        }
        StartError::Timing(TimingError::BudgetTooLong(_)) => "--outage-budget 1h --ttl 30s".into(),
        // With no TTL may it be longer.
        StartError::Timeout { timeout, most } if *timeout > REQUEST_MAX => {
            format!("?timeout={} in the URL", span(*most))
        }
        StartError::Timeout { timeout, most } => {
            format!("?timeout={} in the URL, or --ttl {}", span(*most), span(*timeout * 4))
        }
        StartError::Workers { last, .. } => format!("--workers 0-{last}"),
        _ => "correct that flag: frazil serve --help".into(),
    }
}
