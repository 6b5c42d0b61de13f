//! Requests to whichever member of the cluster answers.

use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use frazil_etcd::{Client, StatusResponse, TxnRequest, TxnResponse};
use tokio::task::JoinSet;

use super::endpoints::{Endpoints, Use};
use super::failure::Failure;
use super::history::History;
use crate::error::Error;
use crate::sync::lock;
use crate::time::boot_time;

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
pub(super) enum RequestEffect {
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

/// What came of asking a member for its status.
type Probed = Result<(Member, StatusResponse), Failure>;

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
        let mut connection = lock(&self.connection);
        let serial = connection.serial + 1;
        *connection = Connection { client: Some(member.client), index: member.index, serial };
    }

    fn member(&self, connection: Connection) -> Result<Member, Failure> {
        let index = connection.index;
        if let Some(client) = connection.client {
            return Ok(Member { client, index });
        }
        let client = self.endpoints.open(index, Use::Requests)?;
        let mut current = lock(&self.connection);
        if current.serial == connection.serial {
            current.client = Some(client.clone());
        }
        Ok(Member { client, index })
    }

    /// Gives up a connection, unless somebody did already.
    fn leave(&self, serial: u64) {
        let mut connection = lock(&self.connection);
        if connection.serial == serial {
            let index = (connection.index + 1) % self.endpoints.count();
            *connection = Connection { client: None, index, serial: serial + 1 };
        }
    }
}

impl Call<'_> {
    /// What is left of the time for this act.
    pub(super) fn remaining(&self) -> Duration {
        (self.started + self.remote.endpoints.url.timeout()).saturating_sub(boot_time())
    }

    /// Asks all members at once, each by its index.
    pub(super) fn probe_all(&self) -> JoinSet<(usize, Probed)> {
        let (endpoints, patience) = (&self.remote.endpoints, self.remaining());
        let mut asked = JoinSet::new();
        for index in 0..endpoints.count() {
            let endpoints = Arc::clone(endpoints);
            asked.spawn(async move {
                let answer = tokio::time::timeout(patience, probe(&endpoints, index)).await;
                let silence = |_| Failure::Undone(format!("no answer within {patience:?}").into());
                (index, answer.map_err(silence).flatten())
            });
        }
        asked
    }

    /// Asks all members, and takes the first that answers into use.
    pub(super) async fn find_member(&self) -> Result<(Member, StatusResponse), Failure> {
        let mut asked = self.probe_all();
        let mut said = Failure::Undone("no member answers".into());
        while let Some(answer) = asked.join_next().await {
            match answer {
                Ok((_, Ok((member, status)))) => {
                    self.remote.adopt(member.clone());
                    return Ok((member, status));
                }
                // A refusal tells more than silence, whoever comes first.
                Ok((_, Err(failure))) if !matches!(said, Failure::Refused(..)) => {
                    said = self.remote.endpoints.hint(failure);
                }
                Ok((_, Err(_))) | Err(_) => {}
            }
        }
        Err(said.of_read())
    }

    /// Carries out a transaction, and checks that the store has not gone back.
    pub(super) async fn transact(
        &self,
        nature: RequestEffect,
        txn: &TxnRequest,
    ) -> Result<TxnResponse, Failure> {
        let before = self.remote.history.position();
        let answer =
            self.request(nature, |member| async move { member.client.txn(txn).await }).await?;
        match self.remote.history.observe(before, &answer) {
            true => Ok(answer),
            false => Err(Failure::Regressed),
        }
    }

    /// Asks the member in use, and then the others as long as asking again does no harm.
    pub(super) async fn request<T, E, F, R>(
        &self,
        nature: RequestEffect,
        ask: F,
    ) -> Result<T, Failure>
    where
        F: Fn(Member) -> R,
        R: Future<Output = Result<T, E>>,
        Failure: From<E>,
    {
        let mut untried = self.remote.endpoints.count();
        loop {
            let connection = lock(&self.remote.connection).clone();
            let serial = connection.serial;
            let share = match nature {
                RequestEffect::Reads => {
                    self.remaining() / u32::try_from(untried).unwrap_or(1).max(1)
                }
                RequestEffect::Writes => self.remaining(),
            };
            let asking = async { Ok(ask(self.remote.member(connection)?).await?) };
            let failure = match tokio::time::timeout(share, asking).await {
                Ok(Ok(answer)) => return Ok(answer),
                Ok(Err(failure)) => failure,
                Err(_) => Failure::Unanswered(format!("no answer within {share:?}").into()),
            };
            let again = match &failure {
                Failure::Undone(_) => untried > 1,
                Failure::Unanswered(_) => untried > 1 && nature == RequestEffect::Reads,
                Failure::NoLease | Failure::Refused(..) | Failure::Regressed => {
                    return Err(failure);
                }
            };
            self.remote.leave(serial);
            untried -= 1;
            if !again {
                return Err(if nature == RequestEffect::Reads {
                    failure.of_read()
                } else {
                    failure
                });
            }
        }
    }

    /// How the act ended, for the caller.
    pub(super) fn end<T>(&self, ended: Result<T, Failure>) -> Result<T, Error> {
        let url = &self.remote.endpoints.url;
        ended.map_err(|failure| Error::of(failure.kind(), self.act, url, failure.into_reason()))
    }
}

/// Asks one member for its status.
///
/// A server that turns a client's certificate down says so right after the handshake, and at
/// times the client library loses what was said together with the connection. Asking again soon
/// gets to hear it.
async fn probe(endpoints: &Endpoints, index: usize) -> Probed {
    let mut tries = 0;
    loop {
        tries += 1;
        let client = endpoints.open(index, Use::Requests)?;
        match client.status().await.map_err(Failure::from) {
            Err(Failure::Unanswered(_)) if endpoints.url.tls && tries < TLS_TRIES_MAX => {}
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
        let error = call
            .end(call.transact(RequestEffect::Writes, &TxnRequest::default()).await)
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    }
}
