//! Cluster tasks: what one node does for all, the leader of the election `frazil:cluster`.

mod stale_workers;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use frazil::coord::Error;
use frazil::election::{Candidate, Proof};
use tokio::sync::watch;
use tokio::task::JoinSet;

pub(crate) use self::stale_workers::{StaleCounts, StaleWorkers};
use crate::app::Shared;
use crate::cluster::elections::ElectionStats;
use crate::node::condition::Condition;

/// A task that one node of a cluster runs again and again.
struct ClusterTask {
    name: &'static str,
    /// From the end of one round to the beginning of the next.
    every: Duration,
    round: Round,
    /// Forgets what was found, when another node goes on.
    hand_over: fn(&Shared),
}

/// One round. Two leaders may overlap for a moment, so it must do no harm if it is done twice.
type Round = for<'a> fn(
    &'a Shared,
    &'a Proof,
) -> Pin<Box<dyn Future<Output = Result<(), Error>> + Send + 'a>>;

/// All tasks. Each runs on its own, so that none waits for another.
const TASKS: [ClusterTask; 1] = [ClusterTask {
    name: "report of stale slots",
    every: Duration::from_mins(1),
    round: |shared, _| Box::pin(stale_workers::report(shared)),
    hand_over: |shared| shared.stale.clear(),
}];

/// After a campaign that failed for good: an operator may repair what is wrong.
const TRY_AGAIN: Duration = Duration::from_secs(5);

/// Runs the tasks whenever this node is elected, until it drains.
pub(crate) async fn lead(
    shared: Arc<Shared>,
    candidate: Candidate,
    stats: Arc<ElectionStats>,
    mut condition: watch::Receiver<Condition>,
) {
    let draining = shared.shutdown.draining.clone();
    loop {
        let elected = draining.run_until_cancelled(async {
            // A namespace is made by who leases workers of it. The sender outlives this.
            let _ = condition.wait_for(|condition| condition.state.is_ready()).await;
            candidate.campaign().await
        });
        let leadership = match elected.await {
            None => return,
            Some(Ok(leadership)) => leadership,
            Some(Err(error)) => {
                tracing::error!(error = %format_args!("{error:#}"), "cannot take part in the election of the cluster's leader, and tries again");
                draining.run_until_cancelled(tokio::time::sleep(TRY_AGAIN)).await;
                continue;
            }
        };
        stats.lead(true);
        tracing::info!(token = %leadership.token(), "this node leads the cluster");
        {
            // Dropped before the resignation: what was begun is not finished by two.
            let mut tasks = JoinSet::new();
            for task in &TASKS {
                tasks.spawn(run_task(shared.clone(), leadership.proof(), task));
            }
            tokio::select! {
                () = leadership.cancelled() => {}
                () = draining.cancelled() => {}
            }
        }
        TASKS.iter().for_each(|task| (task.hand_over)(&shared));
        stats.lead(false);
        tracing::info!("this node no longer leads the cluster");
        if let Err(error) = leadership.resign().await {
            tracing::warn!(error = %format_args!("{error:#}"), "could not resign in the store: the next leader of the cluster waits for the TTL");
        }
    }
}

/// Runs one task for as long as the leadership lasts.
async fn run_task(shared: Arc<Shared>, proof: Proof, task: &'static ClusterTask) {
    while proof.is_leader() {
        if let Err(error) = (task.round)(&shared, &proof).await {
            tracing::warn!(error = %format_args!("{error:#}"), "a cluster task failed, and runs again later: {}", task.name);
        }
        tokio::time::sleep(task.every).await;
    }
}
