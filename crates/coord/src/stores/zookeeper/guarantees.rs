//! The guarantees of ZooKeeper as it was found at connecting.

use std::time::Duration;

use frazil_zookeeper as zk;
use tokio::time::timeout_at;

use super::endpoints::Endpoints;
use super::session::Deadline;
use crate::finding::{Finding, sentences};
use crate::guarantees::{Guarantees, Strength};
use crate::timing::Timing;

/// How the servers are set up, as far as a client can see.
#[derive(Clone, Debug)]
pub(super) struct Setup {
    /// How many servers vote; `None` if that cannot be read.
    voters: Option<usize>,
    asked: Duration,
    negotiated: Duration,
    authenticated: bool,
    encrypted: bool,
}

impl Setup {
    pub(super) async fn look(
        client: &zk::Client,
        endpoints: &Endpoints,
        deadline: Deadline,
    ) -> Self {
        let config = timeout_at(deadline, client.get_data("/zookeeper/config")).await;
        let voters = config.ok().and_then(Result::ok).map(|(text, _)| voters(&text));
        Self {
            voters,
            asked: endpoints.session(),
            negotiated: client.session_timeout(),
            authenticated: endpoints.is_authenticated(),
            encrypted: endpoints.is_encrypted(),
        }
    }

    pub(super) fn guarantees(&self) -> Guarantees {
        let store = match self.voters {
            Some(0 | 1) => "ZooKeeper, one server".into(),
            Some(voters) => format!("ZooKeeper, {voters} voting servers"),
            None => "ZooKeeper".into(),
        };
        let lasts = self.negotiated;
        Guarantees {
            store,
            uniqueness: Strength::Unconditional,
            because: "a majority of the servers has every record on disk before it is \
                      acknowledged, and every write names the version that it replaces"
                .into(),
            leadership: format!(
                "at most one holder of the newest token; an old leader that is paused or whose \
                 clock runs slow can still act until it looks at its deadline; a dead one is \
                 replaced after a session of {lasts:?}"
            ),
            token: "strictly increasing for each slot".into(),
            voided_by: vec![
                "the loss of the data directories of a majority of the servers".into(),
                "deleting or restoring nodes by hand".into(),
                "servers with forceSync=no, if the power fails".into(),
            ],
            warnings: sentences(&self.weaknesses()),
        }
    }

    fn weaknesses(&self) -> Vec<Finding> {
        let mut found = Vec::new();
        match self.voters {
            Some(0 | 1) => found.push(Finding::warning(
                "a single server: its disk is the only copy of the records",
                "use three or five",
            )),
            Some(voters) if voters % 2 == 0 => found.push(Finding::warning(
                format!("{voters} voting servers survive no more failures than {}", voters - 1),
                "use an odd number",
            )),
            _ => {}
        }
        let (asked, negotiated) = (self.asked, self.negotiated);
        if negotiated != asked {
            found.push(Finding::warning(
                format!("sessions last {negotiated:?} and not {asked:?} as asked for"),
                "set the option session within minSessionTimeout and maxSessionTimeout of the \
                 servers (2 and 20 times their tickTime, unless set)",
            ));
        }
        if !self.authenticated {
            found.push(Finding::warning(
                "anybody who reaches the servers can change the records",
                "log in: zk://USER@HOST with the password in password_file= or \
                 FRAZIL_STORE_PASSWORD",
            ));
        } else if !self.encrypted {
            found.push(Finding::warning(
                "the password crosses the network in the clear",
                "use zks:",
            ));
        }
        found
    }

    /// The weaknesses, and whether leases of these durations fit the sessions.
    pub(super) fn findings(&self, timing: &Timing) -> Vec<Finding> {
        let mut found = self.weaknesses();
        let (ttl, lasts) = (timing.ttl, self.negotiated);
        if ttl > lasts {
            found.push(Finding::danger(
                format!(
                    "a TTL of {ttl:?} is longer than a session of {lasts:?}: no worker is leased"
                ),
                format!(
                    "set --ttl to {}s, or ?session= to {}s with maxSessionTimeout of the servers \
                     no less",
                    lasts.as_secs().max(1),
                    ttl.as_secs_f64().ceil()
                ),
            ));
        } else if self.voters.is_none() {
            found.push(Finding::warning(
                "how many servers vote could not be read",
                "let the user read /zookeeper/config",
            ));
        }
        found
    }
}

/// Counts the servers that vote in a dynamic configuration; a single server has none.
fn voters(config: &[u8]) -> usize {
    let text = String::from_utf8_lossy(config);
    text.lines().filter(|line| line.starts_with("server.") && !line.contains(":observer")).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_that_only_observe_do_not_count() {
        let config = b"server.1=a:1:2:participant;3\nserver.2=b:1:2:observer;3\nversion=0";
        assert_eq!(voters(config), 1);
        assert_eq!(voters(b""), 0);
    }
}
