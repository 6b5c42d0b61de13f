//! What was found out about the cluster when connecting, and what that is worth.

use etcd_client::StatusResponse;

use super::remote::{Call, Nature};
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
    pub(super) async fn take(call: &Call<'_>, status: &StatusResponse) -> Self {
        let asked = call.request(Nature::Reads, |member| {
            let mut cluster = member.client.cluster_client();
            async move { Ok(cluster.member_list().await?.members().len()) }
        });
        Self {
            version: status.version().to_owned(),
            members: asked.await.ok(),
            login_ignored: call.remote.doors.is_login_ignored(),
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
            warnings: self.warnings(),
        }
    }

    fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if ends_live_leases(&self.version) {
            warnings.push(format!(
                "etcd {} can end leases that are being renewed, after its leader was stuck: a \
                 leader may be replaced early, ids stay unique; upgrade to 3.4.31, 3.5.13 or later",
                self.version
            ));
        }
        match self.members {
            Some(1) => warnings.push(
                "the cluster has one member: while it is away nobody can acquire, and its disk is \
                 the only copy; run three"
                    .into(),
            ),
            Some(_) => {}
            None => warnings.push("the number of members could not be read".into()),
        }
        if self.login_ignored {
            warnings.push(
                "the cluster asks nobody for a password: run etcdctl auth enable, or leave the \
                 user out of the URL"
                    .into(),
            );
        }
        warnings
    }
}

/// Whether a version is older than the fix that keeps a stuck leader from ending live leases. One
/// that cannot be read counts as old.
fn ends_live_leases(version: &str) -> bool {
    let plain = version.split(['-', '+']).next().unwrap_or_default();
    let mut parts = plain.split('.').map(str::parse::<u32>);
    let (Some(Ok(major)), Some(Ok(minor)), Some(Ok(patch))) =
        (parts.next(), parts.next(), parts.next())
    else {
        return true;
    };
    match (major, minor) {
        (3, 4) => patch < 31,
        (3, 5) => patch < 13,
        newer_or_older => newer_or_older < (3, 4),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_before_the_fix_are_warned_about() {
        for old in ["3.3.27", "3.4.23", "3.4.30", "3.5.0", "3.5.12", "2.3.8", "", "what"] {
            assert!(ends_live_leases(old), "{old}");
        }
        for new in ["3.4.31", "3.5.13", "3.5.13+deb", "3.6.0-rc.1", "3.6.0", "4.0.0"] {
            assert!(!ends_live_leases(new), "{new}");
        }
    }
}
