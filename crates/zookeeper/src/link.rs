//! The way to the servers: which is tried when, and how a session is begun or gone on with.

use std::hash::{BuildHasher, RandomState};
use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{sleep, timeout};

use crate::config::Config;
use crate::connection::{self, Connection, malformed};
use crate::error::{Error, HostFailure, Stage};
use crate::jute::Decoder;
use crate::request::{Request, opcode};
use crate::session::{Grant, Session, Timing, connect_request};
use crate::watch::{Event, Watches};

/// After all hosts were tried once; it doubles with every round.
const PAUSE_MIN: Duration = Duration::from_millis(100);
/// No pause is longer: who waits for the session sees it again soon after a server is back.
const PAUSE_MAX: Duration = Duration::from_secs(2);

/// Watches are set again with so many bytes of paths at once: servers take 1 MB.
const WATCHED_MAX: usize = 128 << 10;

/// The numbers of messages that are no requests of the caller.
pub(crate) mod xid {
    pub(crate) const EVENT: i32 = -1;
    pub(crate) const PING: i32 = -2;
    pub(crate) const AUTH: i32 = -4;
    pub(crate) const SET_WATCHES: i32 = -8;
}

/// What it takes to connect, and what is known of the session.
#[derive(Debug)]
pub(crate) struct Link {
    config: Config,
    pub(crate) session: Option<Session>,
    pub(crate) timing: Timing,
    /// The last transaction that an answer came from: no server that knows less is gone on with.
    pub(crate) zxid: i64,
}

/// The head of an answer, and what follows it.
pub(crate) struct Reply<'a> {
    pub(crate) xid: i32,
    pub(crate) zxid: i64,
    pub(crate) code: i32,
    pub(crate) body: Decoder<'a>,
}

impl Link {
    pub(crate) fn new(config: Config) -> Self {
        let timing = Timing::new(config.session_timeout, config.silence_max);
        Self { session: config.session.clone(), config, timing, zxid: 0 }
    }

    pub(crate) const fn is_detached(&self) -> bool {
        self.config.detached
    }

    /// Tries all hosts again and again, until the session is gone on with or over.
    pub(crate) async fn connect_again(
        &mut self,
        watches: &mut Watches,
    ) -> Result<Connection, Error> {
        let mut pause = PAUSE_MIN;
        loop {
            match self.connect(watches).await {
                Err(Error::Unreachable(_)) => sleep(about(pause)).await,
                settled => return settled,
            }
            pause = PAUSE_MAX.min(pause * 2);
        }
    }

    /// Tries every host once.
    pub(crate) async fn connect(&mut self, watches: &mut Watches) -> Result<Connection, Error> {
        let (chance, mut hosts) = (RandomState::new(), self.config.hosts.clone());
        hosts.sort_by_cached_key(|host| chance.hash_one(host));
        let mut failures = Vec::new();
        for host in hosts {
            let mut stage = Stage::Connect;
            let limit = self.timing.silence;
            let begun = timeout(limit, self.begin(&host, &mut stage, watches)).await;
            let cause = match begun {
                Ok(Ok(connection)) => return Ok(connection),
                Ok(Err(error @ (Error::SessionExpired | Error::AuthFailed))) => return Err(error),
                Ok(Err(error)) => cause_of(error),
                Err(_) => {
                    io::Error::new(io::ErrorKind::TimedOut, format!("no answer in {limit:?}"))
                        .into()
                }
            };
            let host = format!("{}:{}", host.0, host.1);
            failures.push(HostFailure { host, stage, cause });
        }
        Err(Error::Unreachable(failures.into()))
    }

    /// Begins a session with a host, or goes on with it: logs in and sets watches. A ping is answered
    /// last.
    async fn begin(
        &mut self,
        host: &(String, u16),
        stage: &mut Stage,
        watches: &mut Watches,
    ) -> Result<Connection, Error> {
        let opened = connection::open(host, self.config.tls.as_ref(), stage).await;
        let mut connection = opened.map_err(lost)?;
        *stage = Stage::Session;
        let request = connect_request(self.session.as_ref(), self.timing.session, self.zxid);
        connection.push_frame(&[&request]);
        let grant = Grant::decode(&connection.exchange().await.map_err(lost)?)?;
        if self.session.as_ref().is_some_and(|session| session.id() != grant.session.id()) {
            return Err(Error::SessionExpired);
        }

        let mut awaited = self.introduce(&mut connection, watches);
        while awaited > 0 {
            let frame = connection.exchange().await.map_err(lost)?;
            let mut reply = Reply::decode(&frame)?;
            match reply.xid {
                xid::EVENT => {
                    if let Some(event) = Event::decode(&mut reply.body)? {
                        watches.tell(&event);
                    }
                }
                xid::AUTH | xid::SET_WATCHES | xid::PING => {
                    reply.check()?;
                    awaited -= 1;
                }
                other => return Err(lost(malformed(format!("an answer to request {other}")))),
            }
        }
        // Only now: no other host is asked for a session that this one could not begin.
        self.timing = Timing::new(grant.timeout, self.config.silence_max);
        self.session = Some(grant.session);
        Ok(connection)
    }

    /// Prepares what goes before all requests. Gives how many answers there are to it.
    fn introduce(&self, connection: &mut Connection, watches: &mut Watches) -> usize {
        let mut requests = Vec::new();
        requests.extend(self.config.login.as_ref().map(|login| (xid::AUTH, Request::auth(login))));
        watches.unwatched();
        let (mut paths, mut bytes) = (Vec::new(), 0);
        let mut watched = watches.paths().peekable();
        while let Some(path) = watched.next() {
            paths.push(path);
            bytes += path.len() + 4;
            if bytes >= WATCHED_MAX || watched.peek().is_none() {
                requests.push((xid::SET_WATCHES, Request::set_watches(self.zxid, &paths)));
                paths.clear();
                bytes = 0;
            }
        }
        requests.push((xid::PING, Request::empty(opcode::PING)));
        requests.iter().for_each(|(xid, request)| connection.push(*xid, request));
        requests.len()
    }
}

/// From half to one and a half of a time, by chance: clients that lost a server together do not all
/// come back at one moment.
fn about(time: Duration) -> Duration {
    const PARTS: u32 = 1024;
    let part = u32::try_from(RandomState::new().hash_one(0) % u64::from(PARTS)).unwrap_or(0);
    time / 2 + time * part / PARTS
}

impl<'a> Reply<'a> {
    pub(crate) fn decode(frame: &'a [u8]) -> Result<Self, Error> {
        let mut body = Decoder::new(frame);
        let (xid, zxid, code) = (body.int()?, body.long()?, body.int()?);
        Ok(Self { xid, zxid, code, body })
    }

    pub(crate) const fn check(&self) -> Result<(), Error> {
        match self.code {
            0 => Ok(()),
            code => Err(Error::from_code(code)),
        }
    }
}

/// The connection is lost for this reason.
pub(crate) fn lost(cause: io::Error) -> Error {
    Error::ConnectionLoss(Arc::new(cause))
}

/// Why a connection is of no use after this error.
pub(crate) fn cause_of(error: Error) -> Arc<io::Error> {
    match error {
        Error::ConnectionLoss(cause) => cause,
        Error::Malformed(why) => Arc::new(malformed(why)),
        other => Arc::new(io::Error::other(other)),
    }
}
