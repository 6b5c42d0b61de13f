//! The health of every member that the URL names: a cluster that works may still be a member
//! short, or have raised an alarm.

use std::sync::Arc;

use etcd_client::StatusResponse;
use tokio::task::JoinSet;

use super::failure::Failure;
use super::remote::{Call, probe};
use crate::finding::Finding;

/// What a member had to say.
struct Reply {
    address: String,
    status: Result<StatusResponse, Failure>,
}

/// Calls all members at once, and says who is missing and who complains.
pub(super) async fn findings(call: &Call<'_>) -> Vec<Finding> {
    let mut replies = call_all(call).await;
    replies.sort_by(|one, other| one.address.cmp(&other.address));
    let silent: Vec<&str> = replies
        .iter()
        .filter(|reply| reply.status.is_err())
        .map(|reply| reply.address.as_str())
        .collect();
    let mut found = Vec::new();
    if !silent.is_empty() {
        found.push(Finding::warning(
            format!(
                "{} of {} members do not answer: {}",
                silent.len(),
                replies.len(),
                silent.join(", ")
            ),
            "start them again, or take them out of the URL if they are gone; without a majority \
             nothing is leased",
        ));
    }
    let mut complaints: Vec<String> = replies
        .iter()
        .filter_map(|reply| reply.status.as_ref().ok())
        .flat_map(|status| status.errors().iter().cloned())
        .collect();
    complaints.sort_unstable();
    complaints.dedup();
    found.extend(complaints.into_iter().map(|complaint| {
        Finding::danger(
            format!("the cluster reports {complaint}"),
            "see etcdctl alarm list and etcdctl endpoint status; after NOSPACE make room (etcdctl \
             compact, etcdctl defrag) and run etcdctl alarm disarm",
        )
    }));
    found
}

async fn call_all(call: &Call<'_>) -> Vec<Reply> {
    let endpoints = &call.remote.endpoints;
    let mut asked = JoinSet::new();
    for (index, address) in endpoints.addresses().enumerate() {
        let (endpoints, patience) = (Arc::clone(endpoints), call.remaining());
        asked.spawn(async move {
            let status = tokio::time::timeout(patience, probe(&endpoints, index)).await;
            let silence = |_| Failure::Unanswered(format!("no answer within {patience:?}"));
            let status = status.map_err(silence).and_then(|answer| Ok(answer?.1));
            Reply { address, status }
        });
    }
    asked.join_all().await
}
