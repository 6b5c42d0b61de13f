//! The activity of a connection, and how long a client may take for what it sends and reads.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, Bytes};
use frazil::coord::internal::time::boot_time;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::unread::HeadLimits;
use crate::net::stream::Stream;

/// What a connection is doing, and since when: one word, written a few times a request, so that no
/// timer is set for each.
#[derive(Debug)]
pub(crate) struct Activity {
    /// Milliseconds of boot time, and the phase in the two lowest bits.
    word: AtomicU64,
    /// Whether more of the answer is still to be written than was.
    is_unfinished: AtomicBool,
}

/// What a connection is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Nothing was asked.
    Idle = 0,
    /// The head of a request arrives.
    Head = 1,
    /// It is answered.
    Busy = 2,
    /// The answer is on its way to the client.
    Reading = 3,
}

/// How long each phase may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PhaseTimeouts {
    pub(crate) idle: Duration,
    pub(crate) head: Duration,
    pub(crate) reading: Duration,
}

impl PhaseTimeouts {
    /// The same with nothing longer than that.
    pub(crate) fn at_most(self, limit: Duration) -> Self {
        let Self { idle, head, reading } = self;
        Self { idle: idle.min(limit), head: head.min(limit), reading: reading.min(limit) }
    }
}

impl Activity {
    pub(crate) fn new() -> Self {
        let word = AtomicU64::new(word(Phase::Idle, now_ms()));
        Self { word, is_unfinished: AtomicBool::new(false) }
    }

    /// A request's head has arrived.
    pub(crate) fn busy(&self) {
        // Relaxed, here and below: one word that stands for itself.
        self.word.store(word(Phase::Busy, 0), Ordering::Relaxed);
    }

    /// It was answered at this moment of boot time.
    pub(crate) fn answered(&self, now: Duration) {
        self.word.store(word(Phase::Reading, to_ms(now)), Ordering::Relaxed);
    }

    /// A piece of a long answer was taken, and more are to come.
    pub(crate) fn goes_on(&self) {
        self.is_unfinished.store(true, Ordering::Relaxed);
        self.answered(boot_time());
    }

    /// The last piece was taken, or nobody wants it.
    pub(crate) fn is_finished(&self) {
        self.is_unfinished.store(false, Ordering::Relaxed);
    }

    /// Whether no request is being answered: what is written then is about one that could not be read.
    fn is_unasked(&self) -> bool {
        matches!(self.seen().0, Phase::Idle | Phase::Head)
    }

    /// Whether nothing was said since the last answer, or at all.
    pub(crate) fn is_idle(&self) -> bool {
        self.seen().0 == Phase::Idle
    }

    /// Bytes came.
    pub(crate) fn heard(&self) {
        if self.is_idle() {
            self.word.store(word(Phase::Head, now_ms()), Ordering::Relaxed);
        }
    }

    /// Everything that was written is on its way.
    fn flushed(&self) {
        let (phase, since_ms) = self.seen();
        if phase == Phase::Reading && !self.is_unfinished.load(Ordering::Relaxed) {
            self.word.store(word(Phase::Idle, since_ms), Ordering::Relaxed);
        }
    }

    fn seen(&self) -> (Phase, u64) {
        let word = self.word.load(Ordering::Relaxed);
        let phase = match word & 3 {
            0 => Phase::Idle,
            1 => Phase::Head,
            2 => Phase::Busy,
            _ => Phase::Reading,
        };
        (phase, word >> 2)
    }

    /// Ends when the client has taken too long for something.
    pub(crate) async fn lost(&self, patience: PhaseTimeouts) {
        let PhaseTimeouts { idle, head, reading } = patience;
        // A phase may end and a shorter one begin while this sleeps.
        let nap = to_ms(idle.min(head).min(reading)).div_ceil(2);
        loop {
            let limit = match self.seen() {
                (Phase::Busy, _) => None,
                (Phase::Idle, since) => Some(since + to_ms(idle)),
                (Phase::Head, since) => Some(since + to_ms(head)),
                (Phase::Reading, since) => Some(since + to_ms(reading)),
            };
            let left = limit.map_or(nap, |limit| limit.saturating_sub(now_ms()));
            if left == 0 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(left.min(nap))).await;
        }
    }
}

const fn word(phase: Phase, ms: u64) -> u64 {
    (ms << 2) | phase as u64
}

fn now_ms() -> u64 {
    to_ms(boot_time())
}

fn to_ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX >> 3).clamp(1, u64::MAX >> 3)
}

/// A stream that notes when bytes come and go, and answers a head that is too large before it is closed.
#[derive(Debug)]
pub(crate) struct TrackedStream {
    stream: Stream,
    /// What was read of it before.
    begun: Bytes,
    activity: Arc<Activity>,
    heads: HeadLimits,
    /// What is left of words that are written in place of a bare answer.
    words: Option<Bytes>,
}

impl TrackedStream {
    pub(crate) const fn new(
        stream: Stream,
        begun: Bytes,
        activity: Arc<Activity>,
        heads: HeadLimits,
    ) -> Self {
        Self { stream, begun, activity, heads, words: None }
    }
}

impl AsyncRead for TrackedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.begun.has_remaining() {
            let count = self.begun.len().min(buffer.remaining());
            buffer.put_slice(&self.begun.split_to(count));
            return Poll::Ready(Ok(()));
        }
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        if buffer.filled().len() > before {
            self.activity.heard();
        }
        read
    }
}

impl AsyncWrite for TrackedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let Self { stream, activity, heads, words, .. } = &mut *self;
        if words.is_none() && activity.is_unasked() {
            *words = heads.in_words(bytes);
        }
        let Some(left) = words else { return Pin::new(stream).poll_write(context, bytes) };
        // Whoever writes gives the same bytes until they are taken.
        while left.has_remaining() {
            match ready!(Pin::new(&mut *stream).poll_write(context, left))? {
                0 => return Poll::Ready(Ok(0)),
                written => left.advance(written),
            }
        }
        *words = None;
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        if matches!(flushed, Poll::Ready(Ok(()))) {
            self.activity.flushed();
        }
        flushed
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
