//! One RESP connection.

mod ids;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, BytesMut};
use frazil::coord::internal::time::boot_time;
use frazil_id::Id;
use frazil_wire::words::instant;
use frazil_wire::{ApiError, Reason};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use self::ids::Run;
use super::COURTESY;
use super::command::{self, invalid, is, text};
use super::frame::{self, Arguments};
use super::handshake;
use super::reply::{Replies, Shape, Version};
use super::session::Session;
use crate::app::Shared;
use crate::config::Limits;
use crate::metrics::{Method, Protocol};
use crate::net::listener::Remote;
use crate::net::poll_on_wake::PollOnWake;
use crate::net::stream::Stream;
use crate::node::info;

/// Bytes read at once from a client that sends pipelines: some hundred commands.
const READ_BYTES_MAX: usize = 16 * 1024;
/// The same from any other: a connection that waits holds no more.
const READ_BYTES_MIN: usize = 512;
/// Answers are sent when there are so many bytes of them, however long the pipeline.
const WRITE_BYTES: usize = 64 * 1024;
/// A buffer that grew larger than this for one answer is given back.
const KEPT_BYTES: usize = 128 * 1024;

pub(super) struct Connection {
    shared: Arc<Shared>,
    stream: Stream,
    limits: Limits,
    input: BytesMut,
    /// Bytes read at once.
    read_bytes: usize,
    replies: Replies,
    session: Session,
    run: Run,
    tally: CommandCounts,
    /// When the command began that is not whole yet.
    half_since: Option<Duration>,
}

/// What was done since the metrics were told.
#[derive(Debug, Default)]
struct CommandCounts {
    /// Commands for IDs.
    answered: u64,
    others: u64,
}

/// What is left to do for a command.
enum Pending {
    Nothing,
    /// IDs of a scope, or many.
    Issue {
        /// `None`: one, and not in an array.
        count: Option<u32>,
        scope: String,
        shape: Shape,
    },
    /// The client wants to go.
    Close,
}

impl Connection {
    pub(super) fn new(shared: Arc<Shared>, stream: Stream, remote: Remote) -> Self {
        let limits = *shared.issuer.limits();
        let session = Session::new(&shared.authenticator, remote);
        Self {
            shared,
            stream,
            limits,
            input: BytesMut::new(),
            read_bytes: READ_BYTES_MIN,
            replies: Replies::new(),
            session,
            run: Run::default(),
            tally: CommandCounts::default(),
            half_since: None,
        }
    }

    pub(super) async fn run(mut self) {
        self.converse().await;
        // TLS ends with a word, so that nobody takes a cut for an end.
        let _ = in_time(COURTESY, self.stream.shutdown()).await;
    }

    /// Answers until one of both ends it.
    async fn converse(&mut self) {
        let closing = self.shared.shutdown.closing.clone();
        let mut closing = PollOnWake::new(closing.cancelled_owned());
        let mut arguments = Arguments::new();
        loop {
            self.input.reserve(self.read_bytes);
            let before = self.input.len();
            if !self.input.is_empty() {
                self.half_since.get_or_insert_with(boot_time);
            }
            let read = tokio::select! {
                biased;
                // Between commands: nothing is in flight.
                () = &mut closing => return,
                read = self.read() => read,
            };
            // How a connection ends is the client's affair.
            if !matches!(read, Ok(1..)) {
                return;
            }
            if self.input.len() - before >= self.read_bytes {
                self.read_bytes = (self.read_bytes * 4).min(READ_BYTES_MAX);
            }
            let began = boot_time();
            self.session.renew(&self.shared.authenticator);
            // On the heap for as long as it takes: a connection that waits does without its memory.
            let goes_on = Box::pin(self.answer_all(&mut arguments)).await;
            let took = boot_time().saturating_sub(began);
            self.shared.metrics.requests.took(Protocol::Resp, took);
            if !matches!(goes_on, Ok(true)) {
                return;
            }
        }
    }

    /// Idle connections may be kept for ever, as with Redis; half a command is not.
    async fn read(&mut self) -> io::Result<usize> {
        let Limits { head_timeout, resp_idle_timeout, auth_timeout, .. } = self.limits;
        let authentication_left = self.session.authentication_left(auth_timeout);
        let reading = self.stream.read_buf(&mut self.input);
        let left = match self.half_since {
            // However slowly it trickles in.
            Some(since) => Some((since + head_timeout).saturating_sub(boot_time())),
            None => Some(resp_idle_timeout).filter(|limit| !limit.is_zero()),
        };
        match [left, authentication_left].into_iter().flatten().min() {
            Some(left) => in_time(left, reading).await,
            None => reading.await,
        }
    }

    /// Answers every whole command that was read. `false`: the connection ends.
    async fn answer_all(&mut self, arguments: &mut Arguments) -> io::Result<bool> {
        let mut answered = 0;
        loop {
            let most = self.session.most(self.limits.max_command_bytes);
            match frame::parse(&self.input, arguments, most) {
                Ok(Some(used)) => {
                    self.half_since = None;
                    let is_in_run = self.joins_run(arguments);
                    if !is_in_run {
                        self.answer_run().await?;
                    }
                    let left = match is_in_run {
                        true => Pending::Nothing,
                        false => self.execute(arguments),
                    };
                    self.input.advance(used);
                    match left {
                        Pending::Nothing => {}
                        Pending::Issue { count, scope, shape } => {
                            self.issue(count, &scope, shape).await?;
                        }
                        Pending::Close => {
                            self.flush().await?;
                            return Ok(false);
                        }
                    }
                }
                Ok(None) => break,
                Err(broken) => {
                    self.answer_run().await?;
                    self.replies.error(&format!("ERR Protocol error: {}", broken.0));
                    self.flush().await?;
                    return Ok(false);
                }
            }
            answered += 1;
            self.flush_if_long().await?;
            if answered % self.limits.max_pipeline == 0 {
                // Others of this thread have their turn.
                self.answer_run().await?;
                self.flush().await?;
                tokio::task::yield_now().await;
            }
        }
        self.answer_run().await?;
        self.flush().await?;
        Ok(true)
    }

    async fn flush_if_long(&mut self) -> io::Result<()> {
        if self.replies.bytes.len() >= WRITE_BYTES { self.flush().await } else { Ok(()) }
    }

    async fn flush(&mut self) -> io::Result<()> {
        let tally = std::mem::take(&mut self.tally);
        let requests = &self.shared.metrics.requests;
        if tally.answered > 0 {
            requests.done_many(Protocol::Resp, Method::Next, tally.answered);
        }
        if tally.others > 0 {
            requests.done_many(Protocol::Resp, Method::Other, tally.others);
        }
        if !self.replies.bytes.is_empty() {
            let Self { stream, replies, limits, .. } = self;
            let writing = async {
                stream.write_all(&replies.bytes).await?;
                stream.flush().await
            };
            in_time(limits.write_timeout, writing).await?;
            self.replies.bytes.clear();
            self.replies.bytes.shrink_to(KEPT_BYTES);
        }
        Ok(())
    }

    /// Does what can be done at once.
    fn execute(&mut self, arguments: &Arguments) -> Pending {
        let input = std::mem::take(&mut self.input);
        let words: Vec<&[u8]> = arguments.iter().map(|range| &input[range.clone()]).collect();
        let left = match words.split_first() {
            None => Pending::Nothing,
            Some((name, words)) => self.execute_named(name, words),
        };
        self.input = input;
        left
    }

    fn execute_named(&mut self, name: &[u8], words: &[&[u8]]) -> Pending {
        // What a browser that was sent here by a hostile page would say, with a key in its body or not.
        if is(name, "POST") || is(name, "HOST:") {
            return Pending::Close;
        }
        if let Err(error) =
            self.session.check(&self.shared.authenticator, command::permission(name))
        {
            return self.fail(Method::Other, &error);
        }
        let (method, outcome) = match name.to_ascii_uppercase().as_slice() {
            b"ID.NEXT" => return self.next(words),
            b"INCR" if words.len() == 1 => return self.incr(),
            // What some clients send for INCR. Other steps would promise a row without gaps.
            b"INCRBY" if matches!(words, [_, b"1"]) => return self.incr(),
            b"INCRBY" if words.len() == 2 => {
                let why = "only steps of 1 are known here: use ID.NEXT count for many IDs";
                (Method::Next, Err(invalid(why)))
            }
            b"ID.DECODE" => (Method::Decode, self.decode(words)),
            b"QUIT" => {
                self.replies.simple("OK");
                self.tally.others += 1;
                return Pending::Close;
            }
            name => {
                self.handshake_counted(name, words);
                return Pending::Nothing;
            }
        };
        match outcome {
            Ok(()) => Pending::Nothing,
            Err(error) => self.fail(method, &error),
        }
    }

    /// What these answer is told by its first byte.
    fn handshake_counted(&mut self, name: &[u8], words: &[&[u8]]) {
        let begin = self.replies.bytes.len();
        self.handshake(name, words);
        match self.replies.bytes.get(begin) {
            Some(b'-') => {
                let requests = &self.shared.metrics.requests;
                requests.failed(Protocol::Resp, Method::Other, Reason::InvalidArgument);
            }
            _ => self.tally.others += 1,
        }
    }

    fn handshake(&mut self, name: &[u8], words: &[&[u8]]) {
        let (session, replies) = (&mut self.session, &mut self.replies);
        match name {
            b"PING" if words.is_empty() => replies.simple("PONG"),
            b"PING" | b"ECHO" if words.len() == 1 => replies.bulk(words[0]),
            b"HELLO" => handshake::hello(&self.shared.authenticator, session, words, replies),
            b"AUTH" => handshake::auth(&self.shared.authenticator, session, words, replies),
            b"SELECT" => handshake::select(words, replies),
            b"CLIENT" => handshake::client(session, words, replies),
            b"COMMAND" => handshake::command(words, replies),
            b"CONFIG" => handshake::config(words, replies),
            b"INFO" => handshake::info(&self.shared, replies),
            b"ID.INFO" => self.info(),
            b"RESET" => {
                session.reset(&self.shared.authenticator);
                replies.version = Version::Two;
                replies.simple("RESET");
            }
            b"PING" | b"ECHO" | b"INCR" | b"INCRBY" => {
                let name = String::from_utf8_lossy(name).to_ascii_lowercase();
                replies.error(&format!("ERR wrong number of arguments for '{name}' command"));
            }
            b"MULTI" | b"EXEC" | b"DISCARD" => replies.error(
                "ERR transactions are not known here, every command stands alone: pipeline without \
                 MULTI (redis-py: pipeline(transaction=False))",
            ),
            name => {
                let name: String = String::from_utf8_lossy(name).chars().take(64).collect();
                replies.error(&format!(
                    "ERR unknown command '{}': IDs come from INCR key or ID.NEXT [count]",
                    name.escape_debug()
                ));
            }
        }
    }

    /// Answers `ID.DECODE id [LAYOUT layout]`.
    fn decode(&mut self, words: &[&[u8]]) -> Result<(), ApiError> {
        let (id, layout) = match words {
            [id] => (id, *self.shared.issuer.layout()),
            [id, option, layout] if is(option, "LAYOUT") => {
                let parsed = text(layout)?.parse();
                (id, parsed.map_err(|error| ApiError::new(Reason::UnknownLayout, error))?)
            }
            _ => return Err(invalid("write ID.DECODE id [LAYOUT layout]")),
        };
        let malformed = |why: &dyn std::fmt::Display| ApiError::new(Reason::MalformedId, why);
        let id: Id = text(id)?.parse().map_err(|error| malformed(&error))?;
        let parts = id.parts(&layout).map_err(|error| malformed(&error))?;
        let unix_ms = layout.unix_ms(parts.tick);
        let replies = &mut self.replies;
        replies.map(7);
        for (name, value) in
            [("id", id.to_string()), ("layout", layout.to_string()), ("time", instant(unix_ms))]
        {
            replies.bulk(name.as_bytes());
            replies.bulk(value.as_bytes());
        }
        for (name, value) in [
            ("unix_ms", unix_ms),
            ("tick", parts.tick),
            ("worker", parts.worker),
            ("sequence", parts.sequence),
        ] {
            replies.bulk(name.as_bytes());
            replies.integer(value.cast_signed());
        }
        self.shared.metrics.requests.done_many(Protocol::Resp, Method::Decode, 1);
        Ok(())
    }

    /// Answers `ID.INFO`.
    fn info(&mut self) {
        let info = info::info(&self.shared);
        let workers: Vec<String> =
            info.lanes.iter().filter_map(|lane| lane.worker).map(|w| w.to_string()).collect();
        let pairs = [
            ("version", info.version),
            ("namespace", info.namespace),
            ("layout", info.layout.text),
            ("node", info.node.name),
            ("state", info.node.state),
            ("workers", workers.join(",")),
            ("issuable_seconds", format!("{:.3}", info.node.issuable_seconds)),
            ("max_count", info.limits.max_count.to_string()),
        ];
        self.replies.map(pairs.len());
        for (name, value) in pairs {
            self.replies.bulk(name.as_bytes());
            self.replies.bulk(value.as_bytes());
        }
    }

    /// Says what is missing, in the words that clients of Redis know.
    fn refuse(&mut self, error: &ApiError) -> Pending {
        self.shared.metrics.requests.failed(Protocol::Resp, Method::Other, error.reason);
        let word = if error.reason == Reason::Unauthenticated { "NOAUTH" } else { "NOPERM" };
        self.replies.error(&format!("{word} {error}"));
        Pending::Nothing
    }

    fn fail(&mut self, method: Method, error: &ApiError) -> Pending {
        if matches!(error.reason, Reason::Unauthenticated | Reason::Forbidden) {
            return self.refuse(error);
        }
        self.shared.metrics.requests.failed(Protocol::Resp, method, error.reason);
        self.replies.failure(error);
        Pending::Nothing
    }
}

async fn in_time<T>(limit: Duration, doing: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    tokio::time::timeout(limit, doing).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}
