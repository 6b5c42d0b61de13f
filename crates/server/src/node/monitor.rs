//! The monitor of the node: logs and publishes every change of its state once, with its reason.

use std::time::Duration;

use frazil::coord::LeaseState;
use frazil::coord::internal::time::boot_time;
use frazil::coord::{Act, Outcome};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::app::Shared;
use crate::node::condition::{Condition, NodeState};

/// How often the node is looked at without a reason: what changes by time alone is seen so late.
const LOOK: Duration = Duration::from_millis(250);

/// The name under which changes of state are logged. Filters and alerts know it, so it stays when files move.
const TARGET: &str = "frazil_server::monitor";

/// Why the monitor has nothing more to watch.
#[derive(Debug)]
pub(crate) enum End {
    /// The server goes.
    Shutdown,
    /// The node has refused for too long, and why.
    Refused(String),
    /// It will never issue, and why.
    Hopeless(frazil::coord::Refusal),
}

/// Looks at the node from time to time and whenever a lease changes, until the server goes or the
/// node is beyond hope.
pub(crate) async fn run(
    shared: &Shared,
    publish: &watch::Sender<Condition>,
    refusal_limit: Duration,
    shutdown: CancellationToken,
) -> End {
    let Some(node) = shared.issuer.node() else { return End::Shutdown };
    let mut statuses = node.watch();
    let mut refusing_since = None;
    let mut renewals = (0, Duration::ZERO);
    loop {
        let seen = statuses.borrow_and_update().clone();
        note_renewals(shared, &mut renewals);
        let condition = shared.condition();
        note_change(publish, &condition);
        if let Some(refusal) = hopeless(&condition, &seen) {
            return End::Hopeless(refusal);
        }
        if condition.state == NodeState::Refusing {
            let since = *refusing_since.get_or_insert_with(boot_time);
            if boot_time().saturating_sub(since) >= refusal_limit {
                return End::Refused(condition.reason.unwrap_or_default());
            }
        } else {
            refusing_since = None;
        }
        tokio::select! {
            () = shutdown.cancelled() => {
                note_change(publish, &shared.condition());
                return End::Shutdown;
            }
            () = tokio::time::sleep(LOOK) => {}
            // Without a sender nothing changes any more: the node was shut down.
            Ok(()) = statuses.changed() => {}
        }
    }
}

/// Publishes a new condition, and logs the change of state or of reason.
pub(crate) fn note_change(publish: &watch::Sender<Condition>, condition: &Condition) {
    let (state, reason) = (condition.state, condition.reason.as_deref());
    let before = publish.borrow().clone();
    if before.state != state {
        let (now, previous) = (state.word(), before.state.word());
        match reason {
            None => tracing::info!(target: TARGET, state = now, previous, "the node is {now}"),
            Some(why) => {
                tracing::warn!(target: TARGET, state = now, previous, "the node is {now}: {why}")
            }
        }
    }
    publish.send_if_modified(|published| {
        let changes = published.state != state || published.reason != condition.reason;
        *published = condition.clone();
        changes
    });
}

/// What only an operator can repair before the node has issued anything.
fn hopeless(
    condition: &Condition,
    statuses: &[frazil::coord::LeaseStatus],
) -> Option<frazil::coord::Refusal> {
    if condition.state != NodeState::Starting {
        return None;
    }
    statuses.iter().find_map(|status| match &status.state {
        LeaseState::Refused(refusal) => Some(refusal.clone()),
        _ => None,
    })
}

/// Renewals are seconds apart, so the time that one look adds is that of one renewal.
fn note_renewals(shared: &Shared, before: &mut (u64, Duration)) {
    let operations = shared.issuer.node().map(frazil::Node::operations).unwrap_or_default();
    let done = operations
        .iter()
        .find(|operation| (operation.act, operation.outcome) == (Act::Extend, Outcome::Done));
    let Some(done) = done else { return };
    let (count, spent) = (done.count - before.0, done.spent.saturating_sub(before.1));
    for _ in 0..count {
        let each = spent / u32::try_from(count).unwrap_or(u32::MAX);
        shared.metrics.renewed(each);
    }
    *before = (done.count, done.spent);
}
