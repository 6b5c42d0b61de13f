//! Messages of calls as they arrive: within their time and their length, and not too many long ones at once.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use frazil_wire::{ApiError, Reason};
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use tokio::time::Sleep;
use tonic::Status;
use tonic::body::Body;

/// Messages of Decode that are waited for at a time: memory for all of each is held from its first
/// bytes on, eight megabytes together. Those of other calls are too short to count.
const UNFINISHED_MAX: usize = 64;

/// What the message of a call may take.
#[derive(Debug)]
pub(super) struct Bounds {
    /// How long it may take to arrive.
    pub(super) limit: Duration,
    /// What that is the time of; none for calls that look after it by themselves.
    pub(super) until: Option<Until>,
    /// Bytes of one message.
    pub(super) most: usize,
    /// Where it is counted while it is waited for, if it may be long.
    pub(super) unfinished: Option<Arc<Unfinished>>,
}

/// How much of a call must have arrived in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Until {
    /// Its first bytes.
    Beginning,
    /// All of it.
    End,
}

/// How many long messages have not arrived as a whole.
#[derive(Debug, Default)]
pub(super) struct Unfinished(AtomicUsize);

/// The message of a call as it arrives.
#[derive(Debug)]
pub(super) struct Message {
    body: Body,
    bounds: Bounds,
    lengths: Lengths,
    /// Whether it is counted among the unfinished ones.
    is_counted: bool,
    /// Set when something is waited for: most messages are there with their heads.
    deadline: Option<Pin<Box<Sleep>>>,
}

impl Message {
    pub(super) const fn new(body: Body, bounds: Bounds) -> Self {
        Self { body, bounds, lengths: Lengths::new(), is_counted: false, deadline: None }
    }

    /// Something of it has arrived. What is too long is refused here, with a reason: whoever decodes it
    /// would refuse it without.
    fn note(&mut self, read: &Option<Result<Frame<Bytes>, Status>>) -> Result<(), ApiError> {
        if self.bounds.until == Some(Until::Beginning) {
            self.bounds.until = None;
            self.deadline = None;
        }
        let Some(Ok(frame)) = read else { return Ok(()) };
        let longest = frame.data_ref().and_then(|data| self.lengths.longest(data));
        let most = self.bounds.most;
        match longest {
            Some(bytes) if usize::try_from(bytes).unwrap_or(usize::MAX) > most => {
                let detail =
                    format_args!("the message has {bytes} bytes, and at most {most} are read");
                Err(ApiError::new(Reason::TooLarge, detail))
            }
            _ => Ok(()),
        }
    }

    /// Counts it among those that are waited for, unless there are too many.
    fn wait(&mut self) -> Result<(), ApiError> {
        let Some(unfinished) = self.bounds.unfinished.as_ref().filter(|_| !self.is_counted) else {
            return Ok(());
        };
        self.is_counted = true;
        // Relaxed: a limit that may be missed by those who come at the same moment.
        if unfinished.0.fetch_add(1, Ordering::Relaxed) < UNFINISHED_MAX {
            return Ok(());
        }
        let detail = format_args!("{UNFINISHED_MAX} messages of this kind are waited for already");
        Err(ApiError::new(Reason::Overloaded, detail).retry_after(Duration::from_secs(1)))
    }

    /// Ends when the message has taken too long.
    fn poll_late(&mut self, context: &mut Context<'_>) -> Poll<Status> {
        if self.bounds.until.is_none() {
            return Poll::Pending;
        }
        let limit = self.bounds.limit;
        let deadline = self.deadline.get_or_insert_with(|| Box::pin(tokio::time::sleep(limit)));
        ready!(deadline.as_mut().poll(context));
        let detail = format_args!("the message did not arrive within {limit:?}");
        Poll::Ready(ApiError::new(Reason::Deadline, detail).into())
    }
}

impl Drop for Message {
    fn drop(&mut self) {
        if let Some(unfinished) = self.bounds.unfinished.as_ref().filter(|_| self.is_counted) {
            unfinished.0.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl HttpBody for Message {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        match Pin::new(&mut self.body).poll_frame(context) {
            Poll::Ready(read) => Poll::Ready(match self.note(&read) {
                Ok(()) => read,
                Err(error) => Some(Err(error.into())),
            }),
            Poll::Pending => match self.wait() {
                Ok(()) => self.poll_late(context).map(|late| Some(Err(late))),
                Err(error) => Poll::Ready(Some(Err(error.into()))),
            },
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// What a failure to read a message means; what is not ours makes no sense of the message.
pub(super) fn unread(status: &Status) -> ApiError {
    let nonsense = || ApiError::new(Reason::InvalidArgument, status.message());
    ApiError::from_status(status).unwrap_or_else(nonsense)
}

/// Bytes before each message: whether it is compressed, and its length.
const PREFIX_BYTES: usize = 5;

/// The lengths that messages say they have, read as they pass.
#[derive(Debug)]
struct Lengths {
    prefix: [u8; PREFIX_BYTES],
    /// Bytes of the prefix that have passed.
    has: usize,
    /// Bytes of the message that have not.
    left: u64,
}

impl Lengths {
    const fn new() -> Self {
        Self { prefix: [0; PREFIX_BYTES], has: 0, left: 0 }
    }

    /// The longest of the messages that begin in these bytes.
    fn longest(&mut self, mut data: &[u8]) -> Option<u32> {
        let mut longest = None;
        loop {
            let skipped = usize::try_from(self.left).unwrap_or(usize::MAX).min(data.len());
            self.left -= skipped as u64;
            data = &data[skipped..];
            let taken = (PREFIX_BYTES - self.has).min(data.len());
            if taken == 0 {
                return longest;
            }
            self.prefix[self.has..self.has + taken].copy_from_slice(&data[..taken]);
            (self.has, data) = (self.has + taken, &data[taken..]);
            if self.has == PREFIX_BYTES {
                let [_, length @ ..] = self.prefix;
                let length = u32::from_be_bytes(length);
                longest = longest.max(Some(length));
                (self.has, self.left) = (0, length.into());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(bytes: u8) -> Vec<u8> {
        [&[0, 0, 0, 0, bytes][..], &vec![7; bytes.into()]].concat()
    }

    #[test]
    fn lengths_are_read_however_the_bytes_are_cut() {
        let stream = [message(3), message(0), message(200), message(1)].concat();
        for piece in 1..=stream.len() {
            let mut lengths = Lengths::new();
            let seen = stream.chunks(piece).map(|data| lengths.longest(data));
            assert_eq!(seen.max().flatten(), Some(200), "{piece}");
            assert_eq!((lengths.has, lengths.left), (0, 0), "{piece}");
        }
        assert_eq!(Lengths::new().longest(&[0, 255, 255]), None);
        assert_eq!(Lengths::new().longest(&[0, 255, 255, 255, 255]), Some(u32::MAX));
    }
}
