//! Requests to whichever member of the cluster answers.

use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use etcd_client::{Client, StatusResponse, Txn, TxnResponse};
use tokio::task::JoinSet;

use super::endpoints::{Endpoints, Use};
use super::failure::Failure;
use super::history::History;
use crate::error::Error;
use crate::time::boot_time;

/// The largest answer that is taken: the records of 65,536 workers at 1 KiB each.
const ANSWER_MAX: usize = 64 << 20;

/// How often a TLS connection that breaks off at its start is tried, when connecting. About every
/// second one shows the reason, and each takes a millisecond or two.
const TLS_TRIES_MAX: u32 = 32;

/// A cluster, of which one member at a time is asked.
///
/// One connection is kept, to the member that answered last. A member that does not answer is
/// left for the next one, together with the connection, which may be dead without saying so.
pub(super) struct Remote {
    pub(super) endpoints: Arc<Endpoints>,
    pub(super) history: History,
    connection: Mutex<Connection>,
}

/// The connection in use.
#[derive(Clone, Default)]
struct Connection {
    client: Option<Client>,
    /// Of the member it leads to.
    index: usize,
    /// Rises with every change, so that many who fail at once change the member once.
    serial: u64,
}

/// One act of the store, which has the URL's time-out for all its requests together.
pub(super) struct Call<'a> {
    pub(super) remote: &'a Remote,
    act: &'static str,
    /// In boot time.
    pub(super) started: Duration,
}

/// What a request may do to the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Nature {
    /// Asking twice does no harm.
    Reads,
    /// Asked once: without an answer it is unknown what happened.
    Writes,
}

/// A connection, and the index of the member it leads to.
#[derive(Clone)]
pub(super) struct Member {
    pub(super) client: Client,
    pub(super) index: usize,
}

impl Remote {
    pub(super) fn new(endpoints: Endpoints) -> Self {
        Self {
            endpoints: Arc::new(endpoints),
            history: History::default(),
            connection: Mutex::default(),
        }
    }

    pub(super) fn call(&self, act: &'static str) -> Call<'_> {
        Call { remote: self, act, started: boot_time() }
    }

    /// Takes a connection into use.
    fn adopt(&self, member: Member) {
        let mut connection = self.lock();
        let serial = connection.serial + 1;
        *connection = Connection { client: Some(member.client), index: member.index, serial };
    }

    async fn member(&self, connection: Connection) -> Result<Member, Failure> {
        let index = connection.index;
        if let Some(client) = connection.client {
            return Ok(Member { client, index });
        }
        let client = self.endpoints.open(index, Use::Requests).await?;
        let mut current = self.lock();
        if current.serial == connection.serial {
            current.client = Some(client.clone());
        }
        Ok(Member { client, index })
    }

    /// Gives up a connection, unless somebody did already.
    fn leave(&self, serial: u64, step: usize) {
        let mut connection = self.lock();
        if connection.serial == serial {
            let index = (connection.index + step) % self.endpoints.count();
            *connection = Connection { client: None, index, serial: serial + 1 };
        }
    }

    fn lock(&self) -> MutexGuard<'_, Connection> {
        // Every change is complete before anything can panic.
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Call<'_> {
    /// What is left of the time for this act.
    pub(super) fn remaining(&self) -> Duration {
        (self.started + self.remote.endpoints.timeout()).saturating_sub(boot_time())
    }

    /// Asks all members at once, and takes the first that answers into use.
    pub(super) async fn find_member(&self) -> Result<StatusResponse, Failure> {
        let mut asked = JoinSet::new();
        for index in 0..self.remote.endpoints.count() {
            let endpoints = Arc::clone(&self.remote.endpoints);
            asked.spawn(async move { probe(&endpoints, index).await });
        }
        let mut said = None;
        loop {
            let limit = self.remote.endpoints.timeout();
            let silence = || Failure::Unanswered(format!("no answer within {limit:?}"));
            match tokio::time::timeout(self.remaining(), asked.join_next()).await {
                Ok(Some(Ok(Ok((member, status))))) => {
                    self.remote.adopt(member);
                    return Ok(status);
                }
                // A refusal tells more than silence, whoever comes first.
                Ok(Some(Ok(Err(failure)))) => match said {
                    Some(Failure::Refused(..) | Failure::Login(_)) => {}
                    _ => said = Some(self.remote.endpoints.hint(failure)),
                },
                Ok(Some(Err(_))) => {}
                Ok(None) | Err(_) => return Err(said.unwrap_or_else(silence)),
            }
        }
    }

    /// Carries out a transaction, and checks that the store has not gone back.
    pub(super) async fn transact(&self, nature: Nature, txn: Txn) -> Result<TxnResponse, Failure> {
        let before = self.remote.history.seen();
        let answer = self
            .request(nature, |member| {
                let txn = txn.clone();
                let mut kv = member.client.kv_client().max_decoding_message_size(ANSWER_MAX);
                async move { Ok(kv.txn(txn).await?) }
            })
            .await?;
        self.remote.history.observe(before, &answer)?;
        Ok(answer)
    }

    /// Asks the member in use, and then the others as long as asking again does no harm.
    pub(super) async fn request<T, F, R>(&self, nature: Nature, ask: F) -> Result<T, Failure>
    where
        F: Fn(Member) -> R,
        R: Future<Output = Result<T, Failure>>,
    {
        let members = self.remote.endpoints.count();
        let mut untried = members;
        let mut logged_in = false;
        loop {
            let connection = self.remote.lock().clone();
            let serial = connection.serial;
            let share = match nature {
                Nature::Reads => self.remaining() / u32::try_from(untried).unwrap_or(1).max(1),
                Nature::Writes => self.remaining(),
            };
            let asking = async { ask(self.remote.member(connection).await?).await };
            let failure = match tokio::time::timeout(share, asking).await {
                Ok(Ok(answer)) => return Ok(answer),
                Ok(Err(failure)) => failure,
                Err(_) => Failure::Unanswered(format!("no answer within {share:?}")),
            };
            let again = match &failure {
                Failure::Login(_) => !std::mem::replace(&mut logged_in, true),
                Failure::Undone(_) => untried > 1,
                Failure::Unanswered(_) => untried > 1 && nature == Nature::Reads,
                Failure::NoLease | Failure::Refused(..) | Failure::Regressed => {
                    return Err(failure);
                }
            };
            if matches!(failure, Failure::Login(_)) {
                self.remote.leave(serial, 0);
            } else {
                self.remote.leave(serial, 1);
                untried -= 1;
            }
            if !again {
                return Err(failure);
            }
        }
    }

    /// The error that a failed request is to the caller.
    pub(super) fn error(&self, nature: Nature, failure: &Failure) -> Error {
        let kind = failure.kind(nature == Nature::Writes);
        Error::new(kind, self.act, &*self.remote.endpoints, failure.message())
    }

    /// An error that is none of a request.
    pub(super) fn problem(&self, kind: crate::ErrorKind, why: impl std::fmt::Display) -> Error {
        Error::new(kind, self.act, &*self.remote.endpoints, why)
    }
}

/// Asks one member for its status.
///
/// A server that turns a client's certificate down says so right after the handshake, and at
/// times the client library loses what was said together with the connection. Asking again soon
/// gets to hear it.
pub(super) async fn probe(
    endpoints: &Endpoints,
    index: usize,
) -> Result<(Member, StatusResponse), Failure> {
    let mut tries = 0;
    loop {
        tries += 1;
        let client = endpoints.open(index, Use::Requests).await?;
        match client.maintenance_client().status().await.map_err(Failure::from) {
            Err(Failure::Unanswered(_)) if endpoints.is_tls() && tries < TLS_TRIES_MAX => {}
            Err(failure) => return Err(failure),
            Ok(status) => return Ok((Member { client, index }, status)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    #[tokio::test]
    async fn a_write_that_could_not_be_sent_is_not_unknown() {
        let url = "etcd://127.0.0.1:1,127.0.0.1:1?timeout=2s".parse().unwrap();
        let remote = Remote::new(Endpoints::new(&url).unwrap());
        let call = remote.call("write");
        let failure = call.transact(Nature::Writes, Txn::new()).await.unwrap_err();
        let error = call.error(Nature::Writes, &failure);
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    }
}
