//! The durations of leases, and whether they go together.

use frazil::{StartError, fixed_worker};
use frazil_coord::internal::rules::REQUEST_MAX;
use frazil_coord::{Timing, TimingError};
use frazil_wire::words::span;

use crate::finding::Finding;
use crate::node_settings::NodeSettings;

const TIMING: &str = "timing";

/// Whether the durations go together: the check `timing`. The clash is that of
/// [`NodeSettings::clash`].
#[must_use]
pub fn timing(node: &NodeSettings, clash: Option<&StartError>) -> Finding {
    match clash {
        None => Finding::ok(TIMING, described(node)),
        Some(clash) => Finding::fail(TIMING, clash.to_string(), flag_for(clash)),
    }
}

fn described(node: &NodeSettings) -> String {
    let Timing { ttl, heartbeat, outage_budget, .. } = node.effective_timing();
    let of = if fixed_worker(&node.url).is_some() { "of a fixed worker: " } else { "" };
    let request = match node.url.hosts.is_empty() {
        true => String::new(),
        false => {
            format!(", {} for a request", span(node.url.timeout().min(ttl / 4).min(REQUEST_MAX)))
        }
    };
    format!(
        "{of}TTL {}, heartbeat {}, outage budget {}{request}",
        span(ttl),
        span(heartbeat),
        span(outage_budget)
    )
}

/// The flag of `frazil serve` that makes it right.
#[must_use]
pub fn flag_for(error: &StartError) -> String {
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
