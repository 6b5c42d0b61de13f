//! The survey of the cluster when connecting, and what that is worth.

use frazil_etcd::{Client, StatusResponse};

use super::remote::{Call, RequestEffect};
use crate::finding::{Finding, sentences};
use crate::guarantees::{Guarantees, Strength};

/// What is known of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Survey {
    /// Of the member that was asked.
    version: String,
    /// `None` if it would not say.
    members: Option<usize>,
    login_ignored: bool,
}

impl Survey {
    /// Asks what the member's status does not say. What it keeps to itself is left open.
    pub(super) async fn take(call: &Call<'_>, client: &Client, status: StatusResponse) -> Self {
        let asked = call.request(RequestEffect::Reads, |member| async move {
            member.client.member_count().await
        });
        Self {
            version: status.version,
            members: asked.await.ok(),
            login_ignored: client.is_login_ignored().await,
        }
    }

    pub(super) fn guarantees(&self) -> Guarantees {
        let members = match self.members {
            Some(1) => "1 member".into(),
            Some(members) => format!("{members} members"),
            None => "an unknown number of members".into(),
        };
        Guarantees {
            store: format!("etcd {}, {members}", self.version),
            uniqueness: Strength::Unconditional,
            because: "a majority of members has each horizon on disk before it is used, whatever \
                      clocks, pauses and networks do"
                .into(),
            leadership: "an old leader may believe in itself for longer than its lease if it was \
                         paused or its clock runs slow: let what it writes to check the token"
                .into(),
            token: "strictly increasing for each slot".into(),
            voided_by: vec![
                "restoring a snapshot or forcing a new cluster without frazil store quarantine \
                 (holders that were connected notice)"
                    .into(),
                "members that do not sync to disk (--unsafe-no-fsync) and lose power".into(),
                "deleting or changing keys by hand".into(),
            ],
            warnings: sentences(&self.weaknesses()),
        }
    }

    /// What weakens the promises, or makes leases end early.
    fn weaknesses(&self) -> Vec<Finding> {
        let (mut found, version) = (Vec::new(), &self.version);
        if loses_data(version) {
            found.push(Finding::danger(
                format!(
                    "etcd {version} can lose data when a member ends unexpectedly under load, and \
                     members then differ"
                ),
                "upgrade to 3.5.3 or later, best to the latest 3.5 or 3.6",
            ));
        }
        if ends_live_leases(version) {
            found.push(Finding::warning(
                format!(
                    "etcd {version} can end leases that are being renewed, after its leader was \
                     stuck: a leader may be replaced early, IDs stay unique"
                ),
                "upgrade to 3.4.31, 3.5.13 or later",
            ));
        }
        match self.members {
            Some(1) => found.push(Finding::warning(
                "the cluster has one member: while it is away nobody can acquire, and its disk is \
                 the only copy",
                "run three",
            )),
            Some(_) => {}
            None => found.push(Finding::warning(
                "the number of members could not be read",
                "let the user list them (etcdctl member list)",
            )),
        }
        if self.login_ignored {
            found.push(Finding::warning(
                "the cluster asks nobody for a password",
                "run etcdctl auth enable, or leave the user out of the URL",
            ));
        }
        found
    }

    /// The weaknesses, and what else whoever looks after the cluster should know. `named`: how many
    /// members the URL names.
    pub(super) fn findings(&self, named: usize) -> Vec<Finding> {
        let mut found = self.weaknesses();
        if is_unmaintained(&self.version) {
            found.push(Finding::warning(
                format!("etcd {} gets no fixes any more", self.version),
                "upgrade to the latest 3.5 or 3.6",
            ));
        }
        if let Some(members) = self.members.filter(|members| named == 1 && *members > 1) {
            found.push(Finding::warning(
                format!(
                    "the URL names 1 of {members} members: while that one is away, so is the store"
                ),
                "name all of them: etcd://h1:2379,h2:2379,h3:2379",
            ));
        }
        found
    }
}

/// Whether a version has the defect that made members differ after one of them crashed.
fn loses_data(version: &str) -> bool {
    matches!(parts(version), Some((3, 5, 0..=2)))
}

/// Whether nobody repairs defects of a version any more.
fn is_unmaintained(version: &str) -> bool {
    parts(version).is_some_and(|(major, minor, _)| (major, minor) < (3, 5))
}

/// Whether a version is older than the fix that keeps a stuck leader from ending live leases. One
/// that cannot be read counts as old.
fn ends_live_leases(version: &str) -> bool {
    match parts(version) {
        Some((3, 4, patch)) => patch < 31,
        Some((3, 5, patch)) => patch < 13,
        Some((major, minor, _)) => (major, minor) < (3, 4),
        None => true,
    }
}

/// The numbers of a version.
fn parts(version: &str) -> Option<(u32, u32, u32)> {
    let plain = version.split(['-', '+']).next().unwrap_or_default();
    let mut parts = plain.split('.').map(str::parse::<u32>);
    match (parts.next(), parts.next(), parts.next()) {
        (Some(Ok(major)), Some(Ok(minor)), Some(Ok(patch))) => Some((major, minor, patch)),
        _ => None,
    }
}

/// Calls all members at once, and says who is missing and who complains.
pub(super) async fn member_health(call: &Call<'_>) -> Vec<Finding> {
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
        .flat_map(|(_, status)| status.errors.iter().cloned())
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Severity;

    #[test]
    fn versions_before_the_fix_are_warned_about() {
        for old in ["3.3.27", "3.4.23", "3.4.30", "3.5.0", "3.5.12", "2.3.8", "", "what"] {
            assert!(ends_live_leases(old), "{old}");
        }
        for new in ["3.4.31", "3.5.13", "3.5.13+deb", "3.6.0-rc.1", "3.6.0", "4.0.0"] {
            assert!(!ends_live_leases(new), "{new}");
        }
    }

    #[test]
    fn versions_that_lose_data_are_a_danger_and_old_ones_a_warning() {
        let survey = |version: &str| Survey {
            version: version.into(),
            members: Some(3),
            login_ignored: false,
        };
        for bad in ["3.5.0", "3.5.1", "3.5.2+patched"] {
            let found = survey(bad).findings(3);
            assert!(found.iter().any(|f| f.severity == Severity::Danger), "{bad}: {found:?}");
        }
        let old = survey("3.4.34").findings(3);
        assert!(matches!(&old[..], [one] if one.what.contains("no fixes")), "{old:?}");
        for good in ["3.5.13", "3.5.21", "3.6.0"] {
            assert_eq!(survey(good).findings(3), [], "{good}");
        }
        let lonely = survey("3.6.0").findings(1);
        assert!(matches!(&lonely[..], [one] if one.what.contains("1 of 3 members")), "{lonely:?}");
    }
}
