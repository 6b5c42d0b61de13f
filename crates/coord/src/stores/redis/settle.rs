//! When a write cannot be lost any more: it is on the master's disk, and every server that could be
//! promoted has it.

use std::time::Duration;

use tokio::time::sleep;

use super::RedisStore;
use super::answer::Answer;
use super::link;
use super::session::Session;
use crate::error::{Error, ErrorKind};
use crate::finding::Finding;
use crate::slot::Group;
use crate::store::{Act, Written};
use crate::time::boot_time;
use crate::url::Scheme;

/// Between two looks.
const PAUSE: Duration = Duration::from_millis(300);
/// A disk or a replica that takes longer is in trouble; whoever waits asks again.
const PATIENCE: Duration = Duration::from_secs(15);

pub(super) async fn settle(store: &RedisStore, written: &Written) -> Result<bool, Error> {
    let (session, began) = (&store.session, boot_time());
    let first = store.look(Act::Settle, Group::Workers, Vec::new()).await?;
    // Whatever was written before this look.
    let offset = master_offset(&first);
    let mut answer = first;
    loop {
        let history = session.history(&answer);
        if history.id != written.history || !history.settles() {
            return Ok(false);
        }
        let on_disk =
            history.settled >= Some(written.clock) || session.settled(&answer.id) >= written.clock;
        let missing = match on_disk {
            true => missing_replicas(session, &answer, offset).await?,
            false => Vec::new(),
        };
        if on_disk && missing.is_empty() {
            return Ok(true);
        }
        if boot_time().saturating_sub(began) > PATIENCE {
            let why = match missing.is_empty() {
                true => "the append-only file was not synced in time: see the server's disk".into(),
                false => format!(
                    "these replicas could be promoted and do not have the last writes: {}",
                    missing.join(", ")
                ),
            };
            return Err(Error::new(ErrorKind::Unavailable, Act::Settle.word(), store, why));
        }
        sleep(PAUSE).await;
        answer = store.look(Act::Settle, Group::Workers, Vec::new()).await?;
    }
}

/// The replicas that could be promoted and are not connected, for whoever looks after them.
pub(super) async fn lost_replicas(session: &Session, answer: &Answer) -> Vec<Finding> {
    let missing = missing_replicas(session, answer, 0).await.unwrap_or_default();
    let found = missing.into_iter().map(|replica| {
        Finding::warning(
            format!(
                "replica {replica} could be promoted and is not connected: workers whose holder \
                 did not release them wait for it, running nodes do not"
            ),
            "start it again, or let the sentinels or the cluster forget it (SENTINEL RESET, CLUSTER \
             FORGET)",
        )
    });
    found.collect()
}

/// Those that could be promoted and do not have all up to an offset.
async fn missing_replicas(
    session: &Session,
    answer: &Answer,
    offset: u64,
) -> Result<Vec<String>, Error> {
    if session.settings.url.scheme == Scheme::Redis {
        return Ok(Vec::new());
    }
    let named = link::promotable(&session.settings, &session.link().await?).await?;
    let connected: Vec<(String, u64)> = answer.replication.lines().filter_map(replica).collect();
    let has_all = |address: &String| {
        connected.iter().any(|(known, reached)| known == address && *reached >= offset)
    };
    Ok(named.into_iter().filter(|address| !has_all(address)).collect())
}

fn master_offset(answer: &Answer) -> u64 {
    answer.replication("master_repl_offset").and_then(|offset| offset.parse().ok()).unwrap_or(0)
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
}
