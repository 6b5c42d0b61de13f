//! The session that presence belongs to, kept up for as long as the store lives.
//!
//! The client reconnects by itself, with pauses that double, and gives up when the session has
//! expired. So whoever needs the session while it is disconnected attaches to it with a new
//! client, and begins a new session once the old one is over. What an abandoned client has sent may
//! arrive later; every write names the version it replaces, so it then fails.

use std::future::Future;
use std::sync::Mutex;
use std::time::Duration;

use frazil_zookeeper as zk;
use frazil_zookeeper::{GetResult, MultiError, Op, OpResult, SessionId, State};
use tokio::time::{Instant, timeout_at};

use super::endpoints::Endpoints;
use crate::error::Failure;
use crate::sync::lock;

pub(super) use frazil_zookeeper::Get;

/// When an act must have ended.
pub(super) type Deadline = Instant;

/// How long the client's own reconnecting is waited for: one of its first attempts.
const RECONNECT_PATIENCE: Duration = Duration::from_millis(300);
/// Between attempts of ours while no server takes us, as after the loss of a leader.
const RETRY_PAUSE: Duration = Duration::from_millis(100);
/// Before a request that failed is repeated on a client that says that it is connected.
const AGAIN_PAUSE: Duration = Duration::from_millis(1);
/// Of one request: with the longest paths it stays under the 1 MiB that servers take.
const READS_MAX: usize = 900;

/// A session over one connection at a time.
#[derive(Debug)]
pub(super) struct Session {
    endpoints: Endpoints,
    current: Mutex<Current>,
    /// Held by whoever replaces the client.
    renewing: tokio::sync::Mutex<()>,
}

#[derive(Clone, Debug)]
struct Current {
    client: zk::Client,
    /// Which client of this store it is.
    number: u64,
    /// Another connection took the session over; this one is of no use.
    moved: bool,
}

/// A node that was read.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) data: Vec<u8>,
    pub(super) stat: zk::Stat,
}

/// What was read in a session.
pub(super) struct Read {
    pub(super) session: SessionId,
    pub(super) got: std::vec::IntoIter<ReadResult>,
}

/// What was read; of a node that does not exist, nothing.
#[derive(Clone, Debug)]
pub(super) enum ReadResult {
    Data(Option<Node>),
    Children(Vec<String>),
}

impl Read {
    pub(super) fn node(&mut self) -> Option<Node> {
        match self.got.next() {
            Some(ReadResult::Data(node)) => node,
            Some(ReadResult::Children(_)) | None => None,
        }
    }

    pub(super) fn names(&mut self) -> Vec<String> {
        match self.got.next() {
            Some(ReadResult::Children(names)) => names,
            Some(ReadResult::Data(_)) | None => Vec::new(),
        }
    }
}

/// How a multi ended.
pub(super) enum Sent {
    Done(Vec<OpResult>),
    /// Something is not as it was read. Nothing was written.
    Refused(zk::Error),
}

impl Session {
    pub(super) fn new(endpoints: Endpoints, client: zk::Client) -> Self {
        let current = Mutex::new(Current { client, number: 0, moved: false });
        Self { endpoints, current, renewing: tokio::sync::Mutex::new(()) }
    }

    /// When an act that begins now must have ended.
    pub(super) fn deadline(&self) -> Deadline {
        Instant::now() + self.endpoints.timeout
    }

    /// How long presence lasts without a sign of life, as negotiated.
    pub(super) fn lasts(&self) -> Duration {
        lock(&self.current).client.session_timeout()
    }

    /// Whether we say who we are.
    pub(super) const fn is_authenticated(&self) -> bool {
        self.endpoints.is_authenticated()
    }

    pub(super) fn id(&self) -> SessionId {
        lock(&self.current).client.session_id()
    }

    /// Reads nodes as they were at one moment (at several if they are very many). `fresh`: a
    /// server that lags behind catches up first.
    pub(super) async fn read(
        &self,
        gets: &[Get],
        fresh: bool,
        deadline: Deadline,
    ) -> Result<Read, Failure> {
        let (mut got, mut session) = (Vec::with_capacity(gets.len()), None);
        for chunk in gets.chunks(READS_MAX) {
            let fresh = fresh && got.is_empty();
            let read = |client: zk::Client| async move {
                Ok((client.session_id(), read(&client, chunk, fresh).await?))
            };
            let (of, more) = self.retry(deadline, read).await?;
            // If a later part was read in another one, nothing can be written over it.
            session.get_or_insert(of);
            got.extend(more);
        }
        let session = session.unwrap_or_else(|| self.id());
        Ok(Read { session, got: got.into_iter() })
    }

    /// Carries out a request that may be repeated: it changes nothing or is sure to change
    /// nothing the second time.
    pub(super) async fn retry<T, F>(
        &self,
        deadline: Deadline,
        request: impl Fn(zk::Client) -> F,
    ) -> Result<T, Failure>
    where
        F: Future<Output = Result<T, zk::Error>>,
    {
        loop {
            let current = self.connected(deadline).await?;
            match within(deadline, request(current.client.clone()))
                .await
                .map_err(Failure::of_read)?
            {
                Ok(done) => return Ok(done),
                Err(error) => match self.noticed(&current, error) {
                    silent @ Failure::Silent(_) if Instant::now() >= deadline => {
                        return Err(Failure::of_read(silent));
                    }
                    // What fails at once must not go round, as when a runtime ends under a client.
                    Failure::Silent(_) => tokio::time::sleep(AGAIN_PAUSE).await,
                    definite @ Failure::Definite(..) => return Err(definite),
                },
            }
        }
    }

    /// Sends a multi once, in the session in which was read what it checks: servers that do not know
    /// the session may have been wiped, and count from the beginning.
    pub(super) async fn send(
        &self,
        session: SessionId,
        ops: &[Op],
        deadline: Deadline,
    ) -> Result<Sent, Failure> {
        let current = self.connected(deadline).await?;
        if current.client.session_id() != session {
            return Ok(Sent::Refused(zk::Error::SessionExpired));
        }
        match within(deadline, current.client.multi(ops)).await? {
            Ok(results) => Ok(Sent::Done(results)),
            Err(MultiError { error, .. }) => match error {
                zk::Error::NoNode | zk::Error::NodeExists | zk::Error::BadVersion => {
                    Ok(Sent::Refused(error))
                }
                other => Err(self.noticed(&current, other)),
            },
        }
    }

    async fn connected(&self, deadline: Deadline) -> Result<Current, Failure> {
        loop {
            let current = lock(&self.current).clone();
            if !current.moved {
                let patience = deadline.min(Instant::now() + RECONNECT_PATIENCE);
                // Whether it connected shows below.
                let _ = timeout_at(patience, settled(&current.client)).await;
                if current.client.state() == State::Connected {
                    return Ok(current);
                }
            }
            match timeout_at(deadline, self.renew(&current)).await {
                Ok(Ok(())) => {}
                Ok(Err(failure)) => return Err(failure),
                Err(_) => return Err(Failure::unavailable("not connected within the time-out")),
            }
        }
    }

    /// Replaces a client by one that is connected, unless it reconnected or was replaced.
    async fn renew(&self, broken: &Current) -> Result<(), Failure> {
        let _turn = self.renewing.lock().await;
        let mut expired = false;
        loop {
            let state = broken.client.state();
            let usable = state == State::Connected && !broken.moved;
            if lock(&self.current).number != broken.number || usable {
                return Ok(());
            }
            expired |= state.is_final();
            let session = (!expired).then(|| broken.client.session().clone());
            match self.endpoints.open(session).await {
                Ok(client) => {
                    let number = broken.number + 1;
                    *lock(&self.current) = Current { client, number, moved: false };
                    return Ok(());
                }
                Err(zk::Error::SessionExpired) => expired = true,
                Err(error @ zk::Error::AuthFailed) => return Err(error.into()),
                Err(_) => tokio::time::sleep(RETRY_PAUSE).await,
            }
        }
    }

    fn noticed(&self, used: &Current, error: zk::Error) -> Failure {
        if matches!(error, zk::Error::SessionMoved) {
            let mut current = lock(&self.current);
            if current.number == used.number {
                current.moved = true;
            }
        }
        error.into()
    }
}

/// Waits while the client is disconnected.
async fn settled(client: &zk::Client) {
    let mut states = client.states();
    // Fails if there will be no other state.
    let _ = states.wait_for(|state| *state != State::Disconnected).await;
}

async fn within<T>(deadline: Deadline, request: impl Future<Output = T>) -> Result<T, Failure> {
    let silent = |_| Failure::Silent("no answer within the time-out".into());
    timeout_at(deadline, request).await.map_err(silent)
}

async fn read(
    client: &zk::Client,
    gets: &[Get],
    fresh: bool,
) -> Result<Vec<ReadResult>, zk::Error> {
    // Requests of one client are answered in order, so both can be under way at once.
    let synced = fresh.then(|| client.sync("/"));
    let results = client.read(gets).await?;
    if let Some(synced) = synced {
        synced.await?;
    }
    gets.iter().zip(results).map(|(get, result)| read_result(get, result)).collect()
}

fn read_result(get: &Get, result: Result<GetResult, zk::Error>) -> Result<ReadResult, zk::Error> {
    match (get, result) {
        (Get::Data(_), Ok(GetResult::Data(data, stat))) => {
            Ok(ReadResult::Data(Some(Node { data, stat })))
        }
        (Get::Children(_), Ok(GetResult::Children(names))) => Ok(ReadResult::Children(names)),
        (Get::Data(_), Err(zk::Error::NoNode)) => Ok(ReadResult::Data(None)),
        (Get::Children(_), Err(zk::Error::NoNode)) => Ok(ReadResult::Children(Vec::new())),
        (_, Err(error)) => Err(error),
        _ => Err(zk::Error::Malformed("it is of another kind than was asked for")),
    }
}
