//! Answers of calls as they are read: in slices, so that it shows whether a client reads.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use tokio::sync::oneshot;
use tokio_util::task::TaskTracker;
use tonic::Status;
use tonic::body::Body;

use super::incoming::ClientState;

/// Bytes of a slice: a frame of HTTP/2.
const SLICE: usize = 16 * 1024;

/// The answer to a call that is answered once.
#[derive(Debug)]
pub(super) struct Answer {
    body: Body,
    /// What is left of the frame that is being given.
    rest: Bytes,
    watch: Watch,
    reading: Option<Reading>,
}

/// Who ends the connection of a client that does not read.
#[derive(Clone, Debug)]
pub(super) struct Watch {
    pub(super) client_state: Arc<ClientState>,
    pub(super) limit: Duration,
    pub(super) tasks: TaskTracker,
}

/// A long answer that is being read.
#[derive(Debug)]
struct Reading {
    slices: Arc<AtomicU64>,
    /// Its end is the end of the answer.
    _unread: oneshot::Sender<()>,
}

impl Watch {
    /// Watches an answer until it is read or dropped.
    fn begin(&self) -> Reading {
        let Self { client_state, limit, tasks } = self.clone();
        let slices = Arc::new(AtomicU64::new(0));
        let (unread, read) = oneshot::channel::<()>();
        let counted = slices.clone();
        tasks.spawn(async move {
            tokio::select! {
                _ = read => {}
                () = stalled(&counted, limit) => client_state.cut.cut(),
            }
        });
        Reading { slices, _unread: unread }
    }
}

/// Ends when no slice was taken for so long.
async fn stalled(slices: &AtomicU64, limit: Duration) {
    let mut before = None;
    loop {
        // Relaxed: a count that stands for itself.
        let taken = Some(slices.load(Ordering::Relaxed));
        if taken == before {
            return;
        }
        before = taken;
        tokio::time::sleep(limit).await;
    }
}

impl Answer {
    pub(super) const fn new(body: Body, watch: Watch) -> Self {
        Self { body, rest: Bytes::new(), watch, reading: None }
    }

    fn slice(&mut self) -> Frame<Bytes> {
        if let Some(reading) = &self.reading {
            reading.slices.fetch_add(1, Ordering::Relaxed);
        }
        Frame::data(self.rest.split_to(SLICE.min(self.rest.len())))
    }
}

impl HttpBody for Answer {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        if !self.rest.is_empty() {
            return Poll::Ready(Some(Ok(self.slice())));
        }
        let read = Pin::new(&mut self.body).poll_frame(context);
        let Poll::Ready(Some(Ok(frame))) = read else { return read };
        match frame.into_data() {
            Ok(data) if data.len() > SLICE => {
                if self.reading.is_none() {
                    self.reading = Some(self.watch.begin());
                }
                self.rest = data;
                Poll::Ready(Some(Ok(self.slice())))
            }
            Ok(data) => Poll::Ready(Some(Ok(Frame::data(data)))),
            Err(other) => Poll::Ready(Some(Ok(other))),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::default()
    }
}
