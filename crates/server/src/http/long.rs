//! Answers about many IDs: written as the client reads them, so that those who do not read cost
//! little.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use frazil::Batch;
use frazil_id::{Layout, Run};
use hyper::body::{Body, Frame, SizeHint};

use super::connection::Activity;
use crate::encode::{DecodedPieces, Pieces, digits_of, push_binary_run, push_run};

/// Pieces of IDs that are written before other connections of the thread have their turn: most
/// answers have fewer.
const IN_A_ROW: u32 = 8;
/// The same for IDs that were taken apart: a piece of them takes ten times as long.
const DECODED_IN_A_ROW: u32 = 1;

/// How each ID is written.
#[derive(Clone, Copy, Debug)]
pub(super) enum Around {
    /// In decimal, with something before and after it.
    Text {
        before: &'static [u8],
        after: &'static [u8],
        /// Bytes after the last ID that are left out.
        cut: usize,
    },
    /// As eight bytes.
    Binary,
}

impl Around {
    /// How many bytes all IDs take.
    fn length(self, batch: &Batch) -> u64 {
        let count = batch.len() as u64;
        match self {
            Self::Text { before, after, cut } => {
                let each = (before.len() + after.len()) as u64;
                digits_of(batch) + count * each - cut as u64
            }
            Self::Binary => count * 8,
        }
    }

    fn write(self, out: &mut Vec<u8>, run: &Run) {
        match self {
            Self::Text { before, after, .. } => push_run(out, run, before, after),
            Self::Binary => push_binary_run(out, run),
        }
    }
}

/// What stands between the beginning and the end.
#[derive(Debug)]
enum Content {
    Ids { pieces: Pieces, around: Around },
    Decoded(DecodedPieces),
}

impl Content {
    fn is_done(&self) -> bool {
        match self {
            Self::Ids { pieces, .. } => pieces.is_done(),
            Self::Decoded(pieces) => pieces.is_done(),
        }
    }

    /// Writes the next piece.
    fn write_next(&mut self, out: &mut Vec<u8>) {
        match self {
            Self::Ids { pieces, around } => {
                if let Some(run) = pieces.next() {
                    around.write(out, &run);
                }
                if pieces.is_done()
                    && let Around::Text { cut, .. } = around
                {
                    out.truncate(out.len() - *cut);
                }
            }
            Self::Decoded(pieces) => pieces.write_next(out),
        }
    }

    const fn in_a_row(&self) -> u32 {
        match self {
            Self::Ids { .. } => IN_A_ROW,
            Self::Decoded(_) => DECODED_IN_A_ROW,
        }
    }
}

/// A beginning, something about many IDs, and an end.
#[derive(Debug)]
pub(super) struct LongBody {
    beginning: &'static [u8],
    content: Content,
    /// There until it was written.
    end: Option<Vec<u8>>,
    /// Bytes that are still to come, if that is known.
    left: Option<u64>,
    /// Pieces since others had their turn.
    in_a_row: u32,
    /// Feels whether the client reads.
    activity: Option<Arc<Activity>>,
}

impl LongBody {
    pub(super) fn new(
        beginning: &'static [u8],
        batch: &Batch,
        around: Around,
        end: Vec<u8>,
    ) -> Self {
        let others = (beginning.len() + end.len()) as u64;
        let left = around.length(batch) + others;
        let content = Content::Ids { pieces: Pieces::new(batch), around };
        Self { beginning, content, end: Some(end), left: Some(left), in_a_row: 0, activity: None }
    }

    /// IDs taken apart, all of which are of the layout.
    pub(super) fn decoded(ids: Vec<u64>, layout: Layout) -> Self {
        Self {
            beginning: b"{\"decoded\":[",
            content: Content::Decoded(DecodedPieces::new(ids, layout)),
            end: Some(b"]}".to_vec()),
            left: None,
            in_a_row: 0,
            activity: None,
        }
    }

    /// All of it at once.
    pub(super) fn whole(mut self) -> Vec<u8> {
        std::iter::from_fn(|| self.next()).flatten().collect()
    }

    /// Lets a connection feel whether its client reads.
    pub(super) fn track(&mut self, activity: &Arc<Activity>) {
        activity.goes_on();
        self.activity = Some(activity.clone());
    }

    /// The next stretch of bytes; the first has the beginning, the last the end.
    fn next(&mut self) -> Option<Vec<u8>> {
        self.end.as_ref()?;
        let mut out = std::mem::take(&mut self.beginning).to_vec();
        self.content.write_next(&mut out);
        if self.content.is_done()
            && let Some(end) = self.end.take()
        {
            out.extend(end);
        }
        Some(out)
    }
}

impl Drop for LongBody {
    fn drop(&mut self) {
        if let Some(activity) = &self.activity {
            activity.is_finished();
        }
    }
}

impl Body for LongBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.in_a_row == self.content.in_a_row() {
            self.in_a_row = 0;
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        self.in_a_row += 1;
        if let Some(activity) = &self.activity {
            activity.goes_on();
        }
        let next = self.next();
        let written = next.as_ref().map_or(0, |bytes| bytes.len() as u64);
        self.left = self.left.map(|left| left - written);
        Poll::Ready(next.map(|bytes| Ok(Frame::data(bytes.into()))))
    }

    fn is_end_stream(&self) -> bool {
        self.end.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        self.left.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}
