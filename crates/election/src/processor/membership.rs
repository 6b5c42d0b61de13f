//! A place among the nodes: the election of the lowest number that nobody has.
//!
//! Numbers are used again, so that the store keeps no more records of nodes than there ever were
//! at a time, and two processes of one name have two of them.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use frazil_coord::internal::time::boot_time;
use frazil_coord::{Entry, Found, Group, Presence};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::attempt::BoxError;
use super::node::{Node, mark_of};
use super::stopped;
use crate::election::at_once;
use crate::{LeaderInfo, Leadership, View};

/// After the store did not answer, or refused something that only an operator can repair.
const REFUSED_PAUSE: Duration = Duration::from_secs(1);
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
        node.reporter.member(Some(number));
        node.reporter.trouble(None);
        joined.send_replace(true);
        let stops = tokio::select! {
            biased;
            () = stopped(&mut stop) => true,
            () = place.cancelled() => false,
        };
        node.reporter.member(None);
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
    loop {
        match try_join(node).await {
            Ok(Some(joined)) => return joined,
            Ok(None) => {}
            Err(error) => {
                tracing::warn!(error = %format_args!("{error:#}"), app = node.app, "this node cannot join the others");
                node.reporter.trouble(Some(format!("{error:#}")));
                sleep(REFUSED_PAUSE).await;
            }
        }
    }
}

/// Goes for the lowest place that nobody has now. `None`: somebody else was faster.
async fn try_join(node: &Node) -> Result<Option<(u32, Leadership)>, BoxError> {
    let mut views = node.elections.view();
    // Asked for, because the last view may be older than the end of who was there.
    let since = boot_time();
    let entries = node.elections.store().list(Group::Elections).await;
    let number = lowest_free(node, &entries?);
    let name = node.node_slot(number);
    let candidate = node.elections.candidate(&name, node.node_settings())?;
    tokio::select! {
        biased;
        won = candidate.campaign_among(at_once()) => Ok(Some((number, won?))),
        () = taken(&mut views, &name, (&node.mark, since)) => Ok(None),
    }
}

/// The lowest number that nobody has.
fn lowest_free(node: &Node, entries: &[Entry]) -> u32 {
    let held = entries.iter().filter(|entry| entry.presence != Presence::Free);
    let taken: BTreeSet<u32> = held.filter_map(|e| node.number_of(e.slot.name())).collect();
    (0..u32::MAX).find(|number| !taken.contains(number)).unwrap_or(u32::MAX)
}

/// Waits until somebody else is seen in a place, in a view that was asked for since then.
async fn taken(
    views: &mut watch::Receiver<Arc<View>>,
    name: &str,
    (mark, since): (&str, Duration),
) {
    let is_taken = |view: &Arc<View>| {
        if view.asked < since {
            return false;
        }
        let Some(entry) = view.entries.get(name) else { return false };
        // On files somebody is present before the record says who: until then the one before, who
        // erased its mark, is in it.
        let is_told = matches!(&entry.found, Found::Known(record) if record.nonce.is_some());
        is_told && LeaderInfo::of(entry).is_some_and(|leader| mark_of(&leader) != mark)
    };
    if views.wait_for(is_taken).await.is_err() {
        // The elections outlive this.
        std::future::pending().await
    }
}
