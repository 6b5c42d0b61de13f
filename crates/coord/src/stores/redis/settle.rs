//! The moment when a write cannot be lost any more: it is on the master's disk, and every server that could be
//! promoted has it.

use std::fmt::Display;
use std::time::Duration;

use tokio::time::sleep;

use super::RedisStore;
use super::answer::Answer;
use super::replicas;
use crate::error::{Error, ErrorKind};
use crate::slot::Group;
use crate::store::{Act, Written};
use crate::time::boot_time;

/// Between two looks.
const PAUSE: Duration = Duration::from_millis(300);
/// A disk that takes longer is in trouble; whoever waits asks again.
const PATIENCE: Duration = Duration::from_secs(15);
/// For replicas, once it is on disk: one that is away may never come back, and whoever waits is to say
/// for which.
const REPLICA_PATIENCE: Duration = Duration::from_secs(4);

pub(super) async fn settle(store: &RedisStore, written: &Written) -> Result<bool, Error> {
    let (session, began) = (&store.session, boot_time());
    let first = store.look(Act::Settle, Group::Workers, Vec::new()).await?;
    // Whatever was written before this look.
    let offset = master_offset(&first);
    let (mut answer, mut synced) = (first, None);
    loop {
        let history = session.history(&answer);
        if history.id != written.history || !history.settles() {
            return Ok(false);
        }
        let on_disk =
            history.settled >= Some(written.clock) || session.settled(&answer.id) >= written.clock;
        if on_disk {
            let synced = *synced.get_or_insert_with(boot_time);
            let missing = replicas::missing(session, &answer, offset).await?;
            if missing.is_empty() {
                return Ok(true);
            }
            if boot_time().saturating_sub(synced) > REPLICA_PATIENCE {
                return Err(unsettled(store, replicas::explained(session, &missing)));
            }
        } else if boot_time().saturating_sub(began) > PATIENCE {
            let why = "the append-only file was not synced in time: see the server's disk";
            return Err(unsettled(store, why));
        }
        sleep(PAUSE).await;
        answer = store.look(Act::Settle, Group::Workers, Vec::new()).await?;
    }
}

fn unsettled(store: &RedisStore, why: impl Display) -> Error {
    Error::new(ErrorKind::Unavailable, Act::Settle.word(), store, why)
}

fn master_offset(answer: &Answer) -> u64 {
    answer.replication("master_repl_offset").and_then(|offset| offset.parse().ok()).unwrap_or(0)
}
