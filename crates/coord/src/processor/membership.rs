//! A place among the nodes: the election of the lowest number that nobody has.
//!
//! Numbers are used again, so that the store keeps no more records of nodes than there ever were
//! at a time, and two processes of one name have two of them.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::node::{Node, mark_of};
use super::stopped;
use crate::election::{LeaderInfo, Leadership, View};
use crate::store::Presence;

/// After the store refused something that only an operator can mend.
const REFUSED_PAUSE: Duration = Duration::from_secs(5);
/// The work of a node that is being stopped does not wait for longer than this until the others
/// know of it: to be ranked last is a matter of milliseconds.
const LEAVE_PATIENCE: Duration = Duration::from_millis(200);

/// Keeps a place among the nodes until told to stop, and then leaves. `joined` tells whether there
/// is one.
pub(super) async fn keep(
    node: Arc<Node>,
    mut stop: watch::Receiver<bool>,
    joined: watch::Sender<bool>,
) {
    loop {
        let (number, place) = tokio::select! {
            biased;
            () = stopped(&mut stop) => return,
            place = join(&node) => place,
        };
        node.teller.member(Some(number));
        joined.send_replace(true);
        let stops = tokio::select! {
            biased;
            () = stopped(&mut stop) => true,
            () = place.cancelled() => false,
        };
        node.teller.member(None);
        if stops {
            if !matches!(timeout(LEAVE_PATIENCE, place.resign()).await, Ok(Ok(()))) {
                tracing::debug!("the others were not told yet that this node leaves");
            }
            return;
        }
        joined.send_replace(false);
        tracing::warn!(app = node.app, "this node lost its place among the nodes");
    }
}

/// Waits for a place.
async fn join(node: &Node) -> (u32, Leadership) {
    let mut views = node.elections.view();
    loop {
        let number = lowest_free(node, &views.borrow_and_update());
        let name = node.node_slot(number);
        let error = match node.elections.candidate(&name, node.node_settings()) {
            Ok(candidate) => tokio::select! {
                biased;
                won = candidate.campaign() => match won {
                    Ok(place) => return (number, place),
                    Err(error) => error.to_string(),
                },
                // Somebody else was faster: to the next number.
                () = taken(&mut views, &name, &node.mark) => continue,
            },
            Err(error) => error.to_string(),
        };
        tracing::error!(error, app = node.app, "this node cannot join the others");
        sleep(REFUSED_PAUSE).await;
    }
}

/// The lowest number that nobody has.
fn lowest_free(node: &Node, view: &View) -> u32 {
    let is_free = |number: &u32| {
        let entry = view.entries.get(&node.node_slot(*number));
        entry.is_none_or(|entry| entry.presence == Presence::Free)
    };
    (0..u32::MAX).find(is_free).unwrap_or(u32::MAX)
}

/// Waits until somebody else is seen in a place.
async fn taken(views: &mut watch::Receiver<Arc<View>>, name: &str, mark: &str) {
    let is_taken = |view: &Arc<View>| {
        let held = view.entries.get(name).filter(|entry| entry.presence != Presence::Free);
        held.is_some_and(|entry| LeaderInfo::of(entry).is_none_or(|it| mark_of(&it) != mark))
    };
    if views.wait_for(is_taken).await.is_err() {
        // The elections outlive this.
        std::future::pending().await
    }
}
