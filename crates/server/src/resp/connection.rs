//! One client.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, BytesMut};
use frazil::coord::time::boot_time;
use frazil_id::Id;
use frazil_wire::{ApiError, Reason};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::COURTESY;
use super::command::{self, Next, invalid, is, text};
use super::frame::{self, Arguments};
use super::handshake;
use super::reply::{Replies, Shape, Version};
use super::session::Session;
use crate::access::Need;
use crate::app::Shared;
use crate::aside::Aside;
use crate::config::Limits;
use crate::encode::Pieces;
use crate::issuer::{Scope, Want};
use crate::metrics::{Method, Protocol};
use crate::scopes::{self, Origin};
use crate::self_portrait;
use crate::stream::Stream;

/// Bytes read at once: a pipeline of some hundred commands.
const READ_BYTES: usize = 16 * 1024;
/// Answers are sent when there are so many bytes of them, however long the pipeline.
const WRITE_BYTES: usize = 64 * 1024;
/// A buffer that grew larger than this for one answer is given back.
const KEPT_BYTES: usize = 128 * 1024;

pub(super) struct Connection {
    shared: Arc<Shared>,
    stream: Stream,
    limits: Limits,
    input: BytesMut,
    replies: Replies,
    session: Session,
    tally: Tally,
    /// When the command began that is not whole yet.
    half_since: Option<Duration>,
}

/// What was done since the metrics were told.
#[derive(Debug, Default)]
struct Tally {
    /// Single Ids without a scope.
    ids: u64,
    others: u64,
}

/// What is left to do for a command.
enum Left {
    Nothing,
    /// Ids that were not there at once, or are many.
    Issue {
        count: u32,
        is_array: bool,
        scope: Option<Scope>,
        shape: Shape,
    },
    /// The client wants to go.
    Close,
}

impl Connection {
    pub(super) fn new(shared: Arc<Shared>, stream: Stream, number: u64) -> Self {
        let limits = *shared.issuer.limits();
        let session = Session::new(&shared.gate, number);
        Self {
            shared,
            stream,
            limits,
            input: BytesMut::with_capacity(READ_BYTES),
            replies: Replies::new(),
            session,
            tally: Tally::default(),
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
        let closing = self.shared.going.closing.clone();
        let mut closing = Aside::new(closing.cancelled_owned());
        let mut arguments = Arguments::new();
        loop {
            self.input.reserve(READ_BYTES);
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
            let began = boot_time();
            self.session.renew(&self.shared.gate);
            let goes_on = self.answer_all(&mut arguments).await;
            let took = boot_time().saturating_sub(began);
            self.shared.metrics.requests.took(Protocol::Resp, took);
            if !matches!(goes_on, Ok(true)) {
                return;
            }
        }
    }

    /// Idle connections may be kept for ever, as with Redis; half a command is not.
    async fn read(&mut self) -> io::Result<usize> {
        let Limits { head_timeout, resp_idle_timeout, .. } = self.limits;
        let reading = self.stream.read_buf(&mut self.input);
        match self.half_since {
            // However slowly it trickles in.
            Some(since) => {
                let left = (since + head_timeout).saturating_sub(boot_time());
                in_time(left, reading).await
            }
            None if resp_idle_timeout.is_zero() => reading.await,
            None => in_time(resp_idle_timeout, reading).await,
        }
    }

    /// Answers every whole command that was read. `false`: the connection ends.
    async fn answer_all(&mut self, arguments: &mut Arguments) -> io::Result<bool> {
        let mut answered = 0;
        loop {
            match frame::parse(&self.input, arguments, self.limits.max_command_bytes) {
                Ok(Some(used)) => {
                    self.half_since = None;
                    let left = self.execute(arguments);
                    self.input.advance(used);
                    match left {
                        Left::Nothing => {}
                        Left::Issue { count, is_array, scope, shape } => {
                            // Whoever sent those before need not wait for this one.
                            self.flush().await?;
                            self.issue(count, is_array, scope, shape).await?;
                        }
                        Left::Close => {
                            self.flush().await?;
                            return Ok(false);
                        }
                    }
                }
                Ok(None) => break,
                Err(broken) => {
                    self.replies.error(&format!("ERR Protocol error: {}", broken.0));
                    self.flush().await?;
                    return Ok(false);
                }
            }
            answered += 1;
            self.flush_if_long().await?;
            if answered % self.limits.max_pipeline == 0 {
                // Others of this thread have their turn.
                self.flush().await?;
                tokio::task::yield_now().await;
            }
        }
        self.flush().await?;
        Ok(true)
    }

    async fn flush_if_long(&mut self) -> io::Result<()> {
        if self.replies.bytes.len() >= WRITE_BYTES { self.flush().await } else { Ok(()) }
    }

    async fn flush(&mut self) -> io::Result<()> {
        let tally = std::mem::take(&mut self.tally);
        let requests = &self.shared.metrics.requests;
        if tally.ids > 0 {
            requests.singles(Protocol::Resp, tally.ids);
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
    fn execute(&mut self, arguments: &Arguments) -> Left {
        // Nearly all commands are this one.
        if let [name, _key] = arguments.as_slice()
            && self.session.is_free()
            && is(&self.input[name.clone()], "INCR")
        {
            return self.incr();
        }
        let input = std::mem::take(&mut self.input);
        let words: Vec<&[u8]> = arguments.iter().map(|range| &input[range.clone()]).collect();
        let left = match words.split_first() {
            None => Left::Nothing,
            Some((name, words)) => self.execute_named(name, words),
        };
        self.input = input;
        left
    }

    /// `INCR key`, and what is the same as it.
    fn incr(&mut self) -> Left {
        if !self.shared.issuer.layout().fits_i64() {
            let why = "Ids of this layout do not fit a signed integer: use ID.NEXT";
            return self.fail(Method::Next, &invalid(why));
        }
        self.one(None, Shape::Integer)
    }

    /// One Id, at once if there is one and nothing has to be looked at.
    fn one(&mut self, scope: Option<Scope>, shape: Shape) -> Left {
        let is_quick = scope.is_none() && self.session.is_free();
        let Some(id) = (if is_quick { self.shared.issuer.try_next() } else { None }) else {
            return Left::Issue { count: 1, is_array: false, scope, shape };
        };
        self.replies.id(id.to_u64(), shape);
        self.tally.ids += 1;
        Left::Nothing
    }

    fn execute_named(&mut self, name: &[u8], words: &[&[u8]]) -> Left {
        if let Err(error) = self.session.admit(command::need(name)) {
            return self.refuse(&error);
        }
        let (method, outcome) = match name.to_ascii_uppercase().as_slice() {
            b"ID.NEXT" => return self.next(words),
            b"INCR" if words.len() == 1 => return self.incr(),
            // What some clients send for INCR. Other steps would promise a row without gaps.
            b"INCRBY" if matches!(words, [_, b"1"]) => return self.incr(),
            b"INCRBY" if words.len() == 2 => {
                let why = "only steps of 1 are known here: use ID.NEXT count for many Ids";
                (Method::Next, Err(invalid(why)))
            }
            b"ID.DECODE" => (Method::Decode, self.decode(words)),
            // What a browser that was sent here by a hostile page would say.
            b"POST" | b"HOST:" => return Left::Close,
            b"QUIT" => {
                self.replies.simple("OK");
                self.tally.others += 1;
                return Left::Close;
            }
            name => {
                self.handshake_counted(name, words);
                return Left::Nothing;
            }
        };
        match outcome {
            Ok(()) => Left::Nothing,
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
            b"HELLO" => handshake::hello(&self.shared.gate, session, words, replies),
            b"AUTH" => handshake::auth(&self.shared.gate, session, words, replies),
            b"SELECT" => handshake::select(words, replies),
            b"CLIENT" => handshake::client(session, words, replies),
            b"COMMAND" => handshake::command(words, replies),
            b"CONFIG" => handshake::config(words, replies),
            b"INFO" => handshake::info(&self.shared, replies),
            b"ID.INFO" => self.info(),
            b"RESET" => {
                session.reset(&self.shared.gate);
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
                    "ERR unknown command '{}': Ids come from INCR key or ID.NEXT [count]",
                    name.escape_debug()
                ));
            }
        }
    }

    fn next(&mut self, words: &[&[u8]]) -> Left {
        let wanted = Next::parse(words).and_then(|next| {
            let scope = self.shared.issuer.scope(next.scope)?;
            if next.shape == Shape::Integer && !self.shared.issuer.layout().fits_i64() {
                return Err(invalid("Ids of this layout do not fit a signed integer: use AS STR"));
            }
            self.shared.issuer.want(next.count.unwrap_or(1), None)?;
            Ok((next.count, scope, next.shape))
        });
        match wanted {
            Ok((None, scope, shape)) => self.one(scope, shape),
            Ok((Some(count), scope, shape)) => Left::Issue { count, is_array: true, scope, shape },
            Err(error) => self.fail(Method::Next, &error),
        }
    }

    /// Issues what takes time, or is more than one.
    async fn issue(
        &mut self,
        count: u32,
        is_array: bool,
        scope: Option<Scope>,
        shape: Shape,
    ) -> io::Result<()> {
        let issued = match self.want(count, scope) {
            Ok(want) => scopes::issue(&self.shared, scope, want, Origin::Client).await,
            Err(error) => Err(error),
        };
        match issued {
            Ok(answered) => {
                let requests = &self.shared.metrics.requests;
                requests.answered(Protocol::Resp, scope, &answered);
                requests.done_many(Protocol::Resp, Method::Next, 1);
                let issued = answered.issued;
                if is_array {
                    self.replies.array(issued.batch.len());
                    for run in Pieces::new(&issued.batch) {
                        self.replies.run(&run, shape);
                        self.flush_if_long().await?;
                    }
                } else {
                    let id = issued.batch.iter().next().unwrap_or_default();
                    self.replies.id(id.to_u64(), shape);
                }
            }
            Err(error) => drop(self.fail(Method::Next, &error)),
        }
        Ok(())
    }

    /// What may be issued to whoever this is.
    fn want(&self, count: u32, scope: Option<Scope>) -> Result<Want, ApiError> {
        let issuer = &self.shared.issuer;
        let want = issuer.want(count, None)?;
        let caller = self.session.admit(Need::Ids)?;
        caller.check_scope(scope.map(|scope| self.shared.scopes.name(scope)))?;
        caller.take(count)?;
        Ok(want)
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
        for (name, value) in [
            ("id", id.to_string()),
            ("layout", layout.to_string()),
            ("time", self_portrait::instant(unix_ms)),
        ] {
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
        let info = self_portrait::info(&self.shared);
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
    fn refuse(&mut self, error: &ApiError) -> Left {
        self.shared.metrics.requests.failed(Protocol::Resp, Method::Other, error.reason);
        let word = if error.reason == Reason::Unauthenticated { "NOAUTH" } else { "NOPERM" };
        self.replies.error(&format!("{word} {error}"));
        Left::Nothing
    }

    fn fail(&mut self, method: Method, error: &ApiError) -> Left {
        if matches!(error.reason, Reason::Unauthenticated | Reason::Forbidden) {
            return self.refuse(error);
        }
        self.shared.metrics.requests.failed(Protocol::Resp, method, error.reason);
        self.replies.failure(error);
        Left::Nothing
    }
}

async fn in_time<T>(limit: Duration, doing: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    tokio::time::timeout(limit, doing).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}
