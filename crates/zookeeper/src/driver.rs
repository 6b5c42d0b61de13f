//! The task behind a client: it has the connection, sends requests, and gives answers and events to
//! those who wait for them. It reconnects for as long as the session can be alive.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, Sleep, sleep_until, timeout_at};

use crate::connection::{Connection, malformed};
use crate::error::Error;
use crate::link::{Link, Reply, cause_of, lost, xid};
use crate::request::{Request, opcode};
use crate::session::{State, Timing};
use crate::watch::{Event, WatchId, Watches};

/// So many requests may wait for their answers. Servers stop reading from a client at about as many.
const PENDING_MAX: usize = 1024;

/// A request of the caller.
#[derive(Debug)]
pub(crate) struct Command {
    pub(crate) request: Request,
    pub(crate) reply: oneshot::Sender<Result<Vec<u8>, Error>>,
    /// Of a request for a watch: its path, and where events go.
    pub(crate) watch: Option<(String, mpsc::Sender<Event>)>,
}

#[derive(Debug)]
pub(crate) struct Driver {
    pub(crate) link: Link,
    pub(crate) commands: mpsc::Receiver<Command>,
    pub(crate) state: watch::Sender<State>,
    pub(crate) watches: Watches,
}

/// A connection while it is used.
struct Active {
    connection: Connection,
    pending: VecDeque<Pending>,
    last_xid: i32,
    /// When something came last, and when something was sent last.
    heard: Instant,
    sent: Instant,
    is_pinged: bool,
    /// Whether no client is left.
    is_closing: bool,
    /// Whether it is the turn of a request, if an answer is there too.
    is_request_first: bool,
}

/// A request that was sent.
struct Pending {
    xid: i32,
    /// Nobody waits for the answer to a request of the client itself.
    reply: Option<oneshot::Sender<Result<Vec<u8>, Error>>>,
    watch: Option<WatchId>,
}

/// What happened to a connection.
enum Step {
    Frame(Vec<u8>),
    /// `None`: there will be no more.
    Command(Option<Command>),
    Lost(io::Error),
    Time,
}

/// How a connection ended.
enum End {
    Lost { heard: Instant, cause: Arc<io::Error> },
    Final(State),
}

impl Driver {
    /// Runs until the session is over or no client is left.
    pub(crate) async fn run(mut self, connection: Connection) {
        let mut connection = connection;
        let last = loop {
            match self.serve(connection).await {
                End::Final(state) => break state,
                End::Lost { heard, cause } => {
                    tracing::debug!(session = ?self.link.session, %cause, "connection lost");
                    self.enter(State::Disconnected);
                    match self.reconnect(heard).await {
                        Ok(again) => connection = again,
                        Err(state) => break state,
                    }
                    tracing::debug!(session = ?self.link.session, "connected again");
                    self.enter(State::Connected);
                }
            }
        };
        tracing::debug!(session = ?self.link.session, state = ?last, "session left");
        // Before the queue is closed: whoever finds it closed asks why.
        self.enter(last);
        self.commands.close();
        while let Ok(command) = self.commands.try_recv() {
            command.fail(last.error());
        }
    }

    fn enter(&mut self, state: State) {
        self.state.send_replace(state);
        self.watches.tell_state(state);
    }

    /// Connects again. Requests are refused in the meantime: nobody knows for how long they would
    /// wait, and what is sent late surprises.
    async fn reconnect(&mut self, heard: Instant) -> Result<Connection, State> {
        let Self { link, commands, watches, .. } = self;
        let (deadline, is_detached) = (heard + link.timing.given_up_after(), link.is_detached());
        let mut connecting = pin!(timeout_at(deadline, link.connect_again(watches)));
        let mut has_clients = true;
        poll_fn(|cx| {
            while has_clients && let Poll::Ready(command) = commands.poll_recv(cx) {
                match command {
                    Some(command) => command.fail(Error::NotConnected),
                    None if is_detached => return Poll::Ready(Err(State::Closed)),
                    // To close the session takes a connection.
                    None => has_clients = false,
                }
            }
            connecting.as_mut().poll(cx).map(|connected| match connected {
                Ok(Ok(connection)) => Ok(connection),
                Ok(Err(Error::AuthFailed)) => Err(State::AuthFailed),
                Ok(Err(_)) | Err(_) => Err(State::Expired),
            })
        })
        .await
    }

    /// Uses a connection until it is lost.
    async fn serve(&mut self, connection: Connection) -> End {
        let mut active = Active::new(connection);
        let mut timer = pin!(sleep_until(active.heard));
        let error = loop {
            if active.is_closing && active.pending.is_empty() {
                return End::Final(State::Closed);
            }
            timer.as_mut().reset(active.wakes_at(&self.link.timing));
            let step = poll_fn(|cx| active.poll_step(cx, &mut self.commands, timer.as_mut())).await;
            if let Err(error) = self.take(&mut active, step) {
                break error;
            }
        };
        self.watches.remove_unset();
        let end = match error {
            Error::SessionExpired => End::Final(State::Expired),
            Error::AuthFailed => End::Final(State::AuthFailed),
            other => End::Lost { heard: active.heard, cause: cause_of(other) },
        };
        for pending in active.pending {
            pending.answer(Err(match &end {
                End::Lost { cause, .. } => Error::ConnectionLoss(cause.clone()),
                End::Final(State::Expired) => Error::SessionExpired,
                // The others may have been carried out.
                End::Final(_) => lost(io::Error::other(Error::AuthFailed)),
            }));
        }
        end
    }

    fn take(&mut self, active: &mut Active, step: Step) -> Result<(), Error> {
        match step {
            Step::Frame(frame) => self.take_frame(active, &frame)?,
            Step::Command(Some(command)) => self.take_command(active, command),
            Step::Command(None) => {
                active.is_closing = true;
                if !self.link.is_detached() {
                    active.send(&Request::empty(opcode::CLOSE_SESSION), None, None);
                }
            }
            Step::Lost(cause) => return Err(lost(cause)),
            Step::Time => {
                active.take_time(&self.link.timing)?;
                self.remove_unwatched(active);
            }
        }
        Ok(())
    }

    fn take_frame(&mut self, active: &mut Active, frame: &[u8]) -> Result<(), Error> {
        active.heard = Instant::now();
        let mut reply = Reply::decode(frame)?;
        if let Err(error @ (Error::SessionExpired | Error::AuthFailed)) = reply.check() {
            return Err(error);
        }
        match reply.xid {
            xid::EVENT => {
                let event = Event::decode(&mut reply.body)?;
                if event.is_some_and(|event| self.watches.tell(&event)) {
                    self.remove_unwatched(active);
                }
            }
            xid::PING => active.is_pinged = false,
            _ => self.take_reply(active, &reply)?,
        }
        Ok(())
    }

    /// Answers come in the order of the requests.
    fn take_reply(&mut self, active: &mut Active, reply: &Reply<'_>) -> Result<(), Error> {
        let Some(pending) = active.pending.pop_front_if(|first| first.xid == reply.xid) else {
            let first = active.pending.front().map(|first| first.xid);
            let why = format!("an answer to request {}, where the next is {first:?}", reply.xid);
            return Err(lost(malformed(why)));
        };
        self.link.zxid = self.link.zxid.max(reply.zxid);
        let checked = reply.check();
        if let Some(watch) = &pending.watch {
            match &checked {
                Ok(()) => self.watches.confirm(watch),
                Err(_) => self.watches.remove(watch),
            }
        }
        pending.answer(checked.map(|()| reply.body.rest().to_vec()));
        Ok(())
    }

    fn take_command(&mut self, active: &mut Active, command: Command) {
        // Whoever gave up waiting does not expect it to be done any more.
        if command.reply.is_closed() {
            return;
        }
        // From now on, since the first event may come before the answer.
        let watch = command.watch.map(|(path, events)| self.watches.add(path, events));
        active.send(&command.request, Some(command.reply), watch);
    }

    fn remove_unwatched(&mut self, active: &mut Active) {
        for path in self.watches.unwatched() {
            active.send(&Request::remove_watches(&path), None, None);
        }
    }
}

impl Active {
    fn new(connection: Connection) -> Self {
        let now = Instant::now();
        Self {
            connection,
            pending: VecDeque::new(),
            last_xid: 0,
            heard: now,
            sent: now,
            is_pinged: false,
            is_closing: false,
            is_request_first: false,
        }
    }

    fn poll_step(
        &mut self,
        cx: &mut Context<'_>,
        commands: &mut mpsc::Receiver<Command>,
        timer: Pin<&mut Sleep>,
    ) -> Poll<Step> {
        let sent = self.connection.poll_send(cx);
        self.is_request_first = !self.is_request_first;
        if self.is_request_first
            && let Poll::Ready(command) = self.poll_command(cx, commands)
        {
            return Poll::Ready(Step::Command(command));
        }
        match (self.connection.poll_frame(cx), sent) {
            (Poll::Ready(Ok(frame)), _) => return Poll::Ready(Step::Frame(frame)),
            (Poll::Ready(Err(error)), _) | (_, Poll::Ready(Err(error))) => {
                return Poll::Ready(Step::Lost(error));
            }
            _ => {}
        }
        if let Poll::Ready(command) = self.poll_command(cx, commands) {
            return Poll::Ready(Step::Command(command));
        }
        timer.poll(cx).map(|()| Step::Time)
    }

    /// The next request, unless too much is under way.
    fn poll_command(
        &self,
        cx: &mut Context<'_>,
        commands: &mut mpsc::Receiver<Command>,
    ) -> Poll<Option<Command>> {
        let is_full = self.pending.len() >= PENDING_MAX || self.connection.is_congested();
        if self.is_closing || is_full { Poll::Pending } else { commands.poll_recv(cx) }
    }

    /// When something is to be done if nothing happens.
    fn wakes_at(&self, timing: &Timing) -> Instant {
        let silent_at = self.heard + timing.silence;
        if self.is_pinged { silent_at } else { silent_at.min(self.sent + timing.ping) }
    }

    fn take_time(&mut self, timing: &Timing) -> Result<(), Error> {
        let now = Instant::now();
        if now >= self.heard + timing.silence {
            let why = format!("the server was silent for {:?}", timing.silence);
            return Err(lost(io::Error::new(io::ErrorKind::TimedOut, why)));
        }
        if !self.is_pinged && now >= self.sent + timing.ping {
            self.connection.push(xid::PING, &Request::empty(opcode::PING));
            self.is_pinged = true;
            self.sent = now;
        }
        Ok(())
    }

    fn send(
        &mut self,
        request: &Request,
        reply: Option<oneshot::Sender<Result<Vec<u8>, Error>>>,
        watch: Option<WatchId>,
    ) {
        self.last_xid = self.last_xid.checked_add(1).unwrap_or(1);
        self.connection.push(self.last_xid, request);
        self.pending.push_back(Pending { xid: self.last_xid, reply, watch });
        self.sent = Instant::now();
    }
}

impl Command {
    fn fail(self, error: Error) {
        // Whoever does not wait any more need not know.
        let _ = self.reply.send(Err(error));
    }
}

impl Pending {
    fn answer(self, answer: Result<Vec<u8>, Error>) {
        if let Some(reply) = self.reply {
            // Whoever does not wait any more need not know.
            let _ = reply.send(answer);
        }
    }
}
