//! The servers that could be promoted in the place of the master: which of them lack the last writes,
//! and which an operator has given up.

use std::collections::BTreeSet;

use super::answer::Answer;
use super::link;
use super::session::Session;
use crate::error::Error;
use crate::finding::Finding;
use crate::replicas::{ForgottenReplica, forget_command};
use crate::store::Act;
use crate::url::Scheme;

/// All servers that could be promoted, at one moment.
struct Replicas {
    /// As sentinels or the cluster name them.
    named: Vec<String>,
    /// Those that are connected, and up to where they have all.
    connected: Vec<(String, u64)>,
    /// Those that an operator has given up.
    forgotten: BTreeSet<String>,
}

impl Replicas {
    async fn look(session: &Session, answer: &Answer) -> Result<Self, Error> {
        let connected = answer.replication.lines().filter_map(replica).collect();
        if !counts(session, answer) {
            return Ok(Self { named: Vec::new(), connected, forgotten: BTreeSet::new() });
        }
        let named = link::promotable(&session.settings, &session.link().await?).await?;
        let mut command = redis::cmd("SMEMBERS");
        command.arg(session.keys.forgotten_replicas());
        let forgotten = session.command(Act::Read, &command).await?;
        Ok(Self { named, connected, forgotten })
    }

    /// Those that must have all up to an offset, and do not.
    fn missing(&self, offset: u64) -> Vec<String> {
        let has_all = |address: &String| {
            self.connected.iter().any(|(known, reached)| known == address && *reached >= offset)
        };
        let counts = |address: &&String| !has_all(address) && !self.is_given_up(address);
        self.named.iter().filter(counts).cloned().collect()
    }

    /// Whether nothing waits for it. What is connected again counts again.
    fn is_given_up(&self, address: &str) -> bool {
        self.forgotten.contains(address) && !self.is_connected(address)
    }

    fn is_connected(&self, address: &str) -> bool {
        self.connected.iter().any(|(known, _)| known == address)
    }

    /// Takes the operator's word back for those that are connected: it was about a server that was
    /// gone, and not about the next time that it is.
    async fn count_again(&self, session: &Session) -> Result<(), Error> {
        let back: Vec<_> =
            self.forgotten.iter().filter(|address| self.is_connected(address)).collect();
        if back.is_empty() {
            return Ok(());
        }
        let mut command = redis::cmd("SREM");
        command.arg(session.keys.forgotten_replicas()).arg(&back);
        let _: u64 = session.command(Act::Put, &command).await?;
        tracing::info!(?back, "replicas are connected again, and takeovers wait for them again");
        Ok(())
    }
}

/// Whether anything waits for replicas. Who would be promoted is not known without sentinels, and where
/// nothing settles nobody waits for that.
fn counts(session: &Session, answer: &Answer) -> bool {
    session.settings.url.scheme != Scheme::Redis && session.history(answer).settles()
}

/// Those that could be promoted and do not have all up to an offset.
pub(super) async fn missing(
    session: &Session,
    answer: &Answer,
    offset: u64,
) -> Result<Vec<String>, Error> {
    let replicas = Replicas::look(session, answer).await?;
    replicas.count_again(session).await?;
    Ok(replicas.missing(offset))
}

/// Gives a server up until it is connected again.
pub(super) async fn forget(
    session: &Session,
    answer: &Answer,
    address: &str,
) -> Result<ForgottenReplica, Error> {
    if !counts(session, answer) {
        return Ok(ForgottenReplica::NoneCounts);
    }
    let replicas = Replicas::look(session, answer).await?;
    if !replicas.named.iter().any(|known| known == address) {
        return Ok(ForgottenReplica::NotKnown { known: replicas.named });
    }
    if replicas.is_connected(address) {
        return Ok(ForgottenReplica::Connected);
    }
    let mut command = redis::cmd("SADD");
    command.arg(session.keys.forgotten_replicas()).arg(address);
    let _: u64 = session.command(Act::Put, &command).await?;
    Ok(ForgottenReplica::Done)
}

/// What whoever looks after the replicas should know. Nothing is written.
pub(super) async fn findings(session: &Session, answer: &Answer) -> Result<Vec<Finding>, Error> {
    let replicas = Replicas::look(session, answer).await?;
    let missing = replicas.missing(0).into_iter().map(|replica| lost(session, replica));
    let given_up = replicas.named.iter().filter(|address| replicas.is_given_up(address));
    Ok(missing.chain(given_up.map(given_up_finding)).collect())
}

fn lost(session: &Session, replica: String) -> Finding {
    let what = format!(
        "replica {replica} could be promoted and is not connected: workers whose holder did not \
         release them wait for it, and so do new nodes that need one of them; running nodes do not"
    );
    let command = forget_command(&[replica], &session.settings.url, session.keys.namespace());
    Finding::warning(what, format!("start it again, or if it is gone for good: {command}"))
}

fn given_up_finding(replica: &String) -> Finding {
    Finding::warning(
        format!(
            "replica {replica} was given up with frazil store forget-replica: no takeover waits for \
             it, and if it were promoted with what it had then, IDs could be issued twice"
        ),
        "let the sentinels or the cluster forget it too (SENTINEL RESET, CLUSTER FORGET), or start it \
         again: it counts once it is connected",
    )
}

/// What is waited for, and what to type.
pub(super) fn explained(session: &Session, missing: &[String]) -> String {
    let command = forget_command(missing, &session.settings.url, session.keys.namespace());
    format!(
        "these replicas could be promoted and do not have the last writes: {}; start them again, \
         or if they are gone for good: {command}",
        missing.join(", ")
    )
}

/// A line such as `slave0:ip=127.0.0.1,port=6380,state=online,offset=14,lag=0`.
fn replica(line: &str) -> Option<(String, u64)> {
    let (name, fields) = line.trim_end().split_once(':')?;
    let is_replica = name.strip_prefix("slave")?.chars().all(|c| c.is_ascii_digit());
    let field = |wanted: &str| {
        let mut pairs = fields.split(',').filter_map(|pair| pair.split_once('='));
        pairs.find_map(|(name, value)| (name == wanted).then_some(value))
    };
    let is_online = is_replica && field("state") == Some("online");
    let address = format!("{}:{}", field("ip")?, field("port")?);
    is_online.then_some((address, field("offset")?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replica_counts_with_the_offset_that_it_has_confirmed_while_it_is_online() {
        let line = "slave0:ip=10.0.0.1,port=6380,state=online,offset=140,lag=0\r";
        assert_eq!(replica(line), Some(("10.0.0.1:6380".into(), 140)));
        assert_eq!(replica(&line.replace("online", "wait_bgsave")), None);
        assert_eq!(replica(&line.replace("slave0", "slaves_of_others")), None);
        assert_eq!(replica(&line.replace("offset=140,", "")), None);
        assert_eq!(replica("connected_slaves:1"), None);
        assert_eq!(replica("role:master"), None);
    }

    #[test]
    fn a_replica_that_was_given_up_is_not_missing_unless_it_is_connected_and_lags() {
        let address = |port: u16| format!("10.0.0.1:{port}");
        let replicas = Replicas {
            named: [1, 2, 3, 4].map(address).to_vec(),
            connected: vec![(address(1), 140), (address(2), 100)],
            forgotten: [address(2), address(3), address(9)].into(),
        };
        assert_eq!(replicas.missing(140), [address(2), address(4)]);
        assert_eq!(replicas.missing(0), [address(4)]);
    }
}
