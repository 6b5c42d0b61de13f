//! The leadership of a strict scope, from the campaign to the resignation.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use frazil::Strict;
use frazil::election::{Candidate, Leadership, Pace};
use tokio::sync::watch;

use super::StrictScope;
use crate::app::Shared;
use crate::cluster::elections::ElectionStats;
use crate::node::condition::{Condition, NodeState};

/// Nodes go for a free scope one after the other within this time, each scope in another order.
const SPREAD_MS: u64 = 200;
/// Whoever leads a scope already lets others go first, for so long for each that it leads.
const PER_SCOPE: Duration = Duration::from_millis(50);
/// A leader that cannot issue for so long makes room for one that can.
const UNABLE_MAX: Duration = Duration::from_secs(3);
/// After a campaign that failed for good: an operator may repair what is wrong.
const TRY_AGAIN: Duration = Duration::from_secs(5);

/// Leads the scope as often as this node is elected, until the node drains.
pub(crate) async fn lead(
    shared: Arc<Shared>,
    scope: Arc<StrictScope>,
    candidate: Candidate,
    stats: Arc<ElectionStats>,
    mut condition: watch::Receiver<Condition>,
) {
    let draining = shared.shutdown.draining.clone();
    let pace = pace(&shared, &scope);
    loop {
        let elected = draining.run_until_cancelled(async {
            // Without a worker there is nothing to lead with. The sender outlives this.
            let _ = condition.wait_for(|condition| condition.state.is_ready()).await;
            candidate.campaign_paced(pace.clone()).await
        });
        match elected.await {
            None => return,
            Some(Ok(leadership)) => {
                stats.lead(true);
                issue_while_leading(&shared, &scope, leadership, &mut condition).await;
                stats.lead(false);
            }
            Some(Err(error)) => {
                tracing::error!(
                    error = %format_args!("{error:#}"),
                    scope = scope.name,
                    "cannot take part in the election of the scope's leader, and tries again"
                );
                draining.run_until_cancelled(tokio::time::sleep(TRY_AGAIN)).await;
            }
        }
    }
}

/// Issues until the leadership is lost, or given back.
async fn issue_while_leading(
    shared: &Shared,
    scope: &StrictScope,
    leadership: Leadership,
    condition: &mut watch::Receiver<Condition>,
) {
    let Some(node) = shared.issuer.node() else { return };
    let issuer = Strict::new(node.clone(), leadership.proof()).above(scope.forwards.last());
    let issuer = Arc::new(issuer);
    scope.set_local_issuer(Some(issuer.clone()));
    tracing::info!(scope = scope.name, token = %leadership.token(), "this node leads the scope");
    tokio::select! {
        () = leadership.cancelled() => {}
        () = shared.shutdown.draining.cancelled() => {}
        () = wait_until_unable(condition) => {}
    }
    scope.set_local_issuer(None);
    // Nothing is issued after this, so the next leader may start right above it.
    let last = issuer.close();
    if let Some(id) = issuer.last() {
        scope.forwards.raise(id);
    }
    if let Some(loss) = leadership.loss() {
        tracing::warn!(scope = scope.name, %loss, "this node no longer leads the scope");
        return;
    }
    match leadership.resign_at(last).await {
        Ok(()) => tracing::info!(scope = scope.name, "this node has resigned from the scope"),
        Err(error) => tracing::warn!(
            error = %format_args!("{error:#}"), scope = scope.name,
            "the store was not told that this node has resigned: the next leader waits for the TTL"
        ),
    }
}

/// Waits until the node has been unable to issue for too long.
async fn wait_until_unable(condition: &mut watch::Receiver<Condition>) {
    let is_unable =
        |now: &Condition| matches!(now.state, NodeState::Refusing | NodeState::Starting);
    loop {
        if condition.wait_for(is_unable).await.is_err() {
            return std::future::pending().await;
        }
        let recovery = condition.wait_for(|now| !is_unable(now));
        if tokio::time::timeout(UNABLE_MAX, recovery).await.is_err() {
            return;
        }
    }
}

/// By rendezvous hash each scope has another order of nodes, so that scopes spread over them.
fn pace(shared: &Arc<Shared>, strict: &StrictScope) -> Pace {
    let mut hasher = DefaultHasher::new();
    (&shared.name, &strict.name).hash(&mut hasher);
    let own = Duration::from_millis(hasher.finish() % SPREAD_MS);
    let shared = Arc::downgrade(shared);
    Arc::new(move |_| {
        let led = shared.upgrade().map_or(0, |shared| {
            shared.scopes.strict().filter(|strict| strict.is_led_here()).count()
        });
        Some(own + PER_SCOPE * u32::try_from(led).unwrap_or(u32::MAX))
    })
}
