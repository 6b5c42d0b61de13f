//! The client: what can be asked of the servers in a session.

use std::fmt;
use std::future::Future;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot, watch};

use crate::config::Config;
use crate::connection::FRAME_MAX;
use crate::driver::{Command, Driver};
use crate::error::Error;
use crate::jute::Decoder;
use crate::link::Link;
use crate::multi::{self, Get, GetResult, MultiError, Op, OpResult};
use crate::node::{Acl, CreateMode, Stat};
use crate::request::{self, Request, opcode};
use crate::session::{Session, SessionId, State};
use crate::watch::{Event, Watch, Watches};

/// So many requests may wait to be sent.
const QUEUE_MAX: usize = 4096;

/// Of the number and the kind of a request.
const HEADER_BYTES: usize = 8;

/// A client in a session. Clones share it.
///
/// A request is sent when the method is called, in the order of the calls, and answered in that
/// order. One whose future is dropped may be carried out all the same. While the client is
/// disconnected, requests fail at once.
///
/// When the last clone is dropped, requests under way are still answered; then the session is
/// closed, unless the client is [`detached`](Config::detached).
#[derive(Clone)]
pub struct Client {
    session: Session,
    session_timeout: Duration,
    commands: mpsc::Sender<Command>,
    state: watch::Receiver<State>,
}

impl Client {
    /// Tries every host once: begins a session, or goes on with that of the settings.
    ///
    /// # Errors
    /// [`Unreachable`](Error::Unreachable) if no server did, with the reason for each;
    /// [`SessionExpired`](Error::SessionExpired) if there is no such session any more;
    /// [`AuthFailed`](Error::AuthFailed) if the login was not accepted.
    pub async fn connect(config: &Config) -> Result<Self, Error> {
        let mut link = Link::new(config.clone());
        let mut watches = Watches::default();
        let connection = link.connect(&mut watches).await?;
        let (commands, queue) = mpsc::channel(QUEUE_MAX);
        let (sender, state) = watch::channel(State::Connected);
        let session = link.session.clone().ok_or(Error::SessionExpired)?;
        let session_timeout = link.timing.session;
        let driver = Driver { link, commands: queue, state: sender, watches };
        // It ends with the last client, or with the session.
        tokio::spawn(driver.run(connection));
        Ok(Self { session, session_timeout, commands, state })
    }

    /// The session, for another client to go on with.
    #[must_use]
    pub const fn session(&self) -> &Session {
        &self.session
    }

    /// The number of the session.
    #[must_use]
    pub const fn session_id(&self) -> SessionId {
        self.session.id()
    }

    /// How long the session lasts without a sign of life, as the servers granted it.
    #[must_use]
    pub const fn session_timeout(&self) -> Duration {
        self.session_timeout
    }

    /// The state of the session.
    #[must_use]
    pub fn state(&self) -> State {
        let state = *self.state.borrow();
        // A task that was taken from us, as when its runtime ends, has said nothing.
        let is_gone = !state.is_final() && self.state.has_changed().is_err();
        if is_gone { State::Closed } else { state }
    }

    /// The states of the session as they follow each other. Some may be skipped.
    #[must_use]
    pub fn states(&self) -> watch::Receiver<State> {
        self.state.clone()
    }

    /// Creates a node.
    pub fn create(
        &self,
        path: &str,
        data: &[u8],
        mode: CreateMode,
        acl: &[Acl],
    ) -> impl Future<Output = Result<Stat, Error>> + Send + use<> {
        self.ask(Request::create(path, data, mode, acl), request::created)
    }

    /// Deletes a node that has this version; `None`: any.
    pub fn delete(
        &self,
        path: &str,
        version: Option<i32>,
    ) -> impl Future<Output = Result<(), Error>> + Send + use<> {
        self.ask(Request::delete(path, version), |_| Ok(()))
    }

    /// The state of a node, if it exists.
    pub fn exists(
        &self,
        path: &str,
    ) -> impl Future<Output = Result<Option<Stat>, Error>> + Send + use<> {
        let asked = self.ask(Request::read(opcode::EXISTS, path), Stat::decode);
        async move {
            match asked.await {
                Err(Error::NoNode) => Ok(None),
                found => found.map(Some),
            }
        }
    }

    /// The data of a node, and its state.
    pub fn get_data(
        &self,
        path: &str,
    ) -> impl Future<Output = Result<(Vec<u8>, Stat), Error>> + Send + use<> {
        self.ask(Request::read(opcode::GET_DATA, path), request::data)
    }

    /// The names of the children of a node, in no order.
    pub fn get_children(
        &self,
        path: &str,
    ) -> impl Future<Output = Result<Vec<String>, Error>> + Send + use<> {
        self.ask(Request::read(opcode::GET_CHILDREN, path), |answer| answer.texts())
    }

    /// Writes a node that has this version; `None`: any.
    pub fn set_data(
        &self,
        path: &str,
        data: &[u8],
        version: Option<i32>,
    ) -> impl Future<Output = Result<Stat, Error>> + Send + use<> {
        self.ask(Request::set_data(path, data, version), Stat::decode)
    }

    /// Replaces what may be done with a node, and by whom.
    pub fn set_acl(
        &self,
        path: &str,
        acl: &[Acl],
    ) -> impl Future<Output = Result<Stat, Error>> + Send + use<> {
        self.ask(Request::set_acl(path, acl), Stat::decode)
    }

    /// Waits until the server knows all that was written before, everywhere.
    pub fn sync(&self, path: &str) -> impl Future<Output = Result<(), Error>> + Send + use<> {
        self.ask(Request::sync(path), |_| Ok(()))
    }

    /// Carries out all of these operations or none.
    pub fn multi(
        &self,
        ops: &[Op],
    ) -> impl Future<Output = Result<Vec<OpResult>, MultiError>> + Send + use<> {
        let (count, sent) = (ops.len(), self.send(multi::write_request(ops), None));
        async move { multi::written(&mut Decoder::new(&answer(sent).await?), count) }
    }

    /// Reads all of these as they were at one moment, each with its own error. Needs ZooKeeper 3.6.
    pub fn read(
        &self,
        gets: &[Get],
    ) -> impl Future<Output = Result<Vec<Result<GetResult, Error>>, Error>> + Send + use<> {
        let (count, sent) = (gets.len(), self.send(multi::read_request(gets), None));
        async move { multi::read(&mut Decoder::new(&answer(sent).await?), count) }
    }

    /// Watches a node and all below it, which need not exist. Needs ZooKeeper 3.6.
    pub fn watch(&self, path: &str) -> impl Future<Output = Result<Watch, Error>> + Send + use<> {
        let (events, watch) = Watch::channel();
        let sent = self.send(Request::add_watch(path), Some((path.to_owned(), events)));
        async move { answer(sent).await.map(|_| watch) }
    }

    fn ask<T>(
        &self,
        request: Request,
        decode: fn(&mut Decoder<'_>) -> Result<T, Error>,
    ) -> impl Future<Output = Result<T, Error>> + Send + use<T> {
        let sent = self.send(request, None);
        async move { decode(&mut Decoder::new(&answer(sent).await?)) }
    }

    fn send(
        &self,
        request: Request,
        watch: Option<(String, mpsc::Sender<Event>)>,
    ) -> Result<oneshot::Receiver<Result<Vec<u8>, Error>>, Error> {
        let bytes = request.body.len() + HEADER_BYTES;
        if bytes > FRAME_MAX {
            return Err(Error::TooLarge(bytes));
        }
        let (reply, answer) = oneshot::channel();
        match self.commands.try_send(Command { request, reply, watch }) {
            Ok(()) => Ok(answer),
            Err(mpsc::error::TrySendError::Full(_)) => Err(Error::Busy),
            Err(mpsc::error::TrySendError::Closed(_)) => Err(self.state().error()),
        }
    }
}

type Sent = Result<oneshot::Receiver<Result<Vec<u8>, Error>>, Error>;

async fn answer(sent: Sent) -> Result<Vec<u8>, Error> {
    // A task that is gone answers nothing.
    sent?.await.unwrap_or(Err(Error::Closed))
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("session", &self.session)
            .field("state", &self.state())
            .finish_non_exhaustive()
    }
}
