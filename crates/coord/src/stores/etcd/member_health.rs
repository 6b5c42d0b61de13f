//! The health of every member that the URL names: a cluster that works may still be a member
//! short, or have raised an alarm.

use super::remote::Call;
use crate::finding::Finding;

/// Calls all members at once, and says who is missing and who complains.
pub(super) async fn findings(call: &Call<'_>) -> Vec<Finding> {
    let mut replies = call.probe_all().join_all().await;
    replies.sort_by_key(|(index, _)| *index);
    let addresses = call.remote.endpoints.url.addresses().zip(&replies);
    let silent = addresses.filter(|(_, (_, reply))| reply.is_err());
    let silent: Vec<String> = silent.map(|(address, _)| address).collect();
    let mut found = Vec::new();
    if !silent.is_empty() {
        let (away, all, names) = (silent.len(), replies.len(), silent.join(", "));
        found.push(Finding::warning(
            format!("{away} of {all} members do not answer: {names}"),
            "start them again, or take them out of the URL if they are gone; without a majority \
             nothing is leased",
        ));
    }
    let mut complaints: Vec<String> = replies
        .iter()
        .filter_map(|(_, reply)| reply.as_ref().ok())
        .flat_map(|(_, status)| status.errors().iter().cloned())
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
