//! Answers with many Ids: written as the client reads them, so that those who do not read cost
//! little.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use frazil::Batch;
use frazil_id::Run;
use hyper::body::{Body, Frame, SizeHint};

use super::patience::Pulse;
use crate::encode::{Pieces, digits_of, push_run};

/// Pieces that are written before other connections of the thread have their turn: most answers have
/// fewer.
const IN_A_ROW: u32 = 8;

/// How each Id is written.
#[derive(Clone, Copy, Debug)]
pub(super) enum Around {
    /// In decimal, with something before and after it.
    Text {
        before: &'static [u8],
        after: &'static [u8],
        /// Bytes after the last Id that are left out.
        cut: usize,
    },
    /// As eight bytes.
    Binary,
}

impl Around {
    /// How many bytes all Ids take.
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
            Self::Binary => {
                let id = |place| run.first.to_u64().wrapping_add(place * run.stride);
                out.extend((0..run.count).flat_map(|place| id(place).to_be_bytes()));
            }
        }
    }
}

/// A beginning, Ids, and an end.
#[derive(Debug)]
pub(super) struct LongBody {
    beginning: &'static [u8],
    pieces: Pieces,
    around: Around,
    /// There until it was written.
    end: Option<Vec<u8>>,
    left: u64,
    /// Pieces since others had their turn.
    in_a_row: u32,
    /// Feels whether the client reads.
    pulse: Option<Arc<Pulse>>,
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
        Self {
            beginning,
            pieces: Pieces::new(batch),
            around,
            end: Some(end),
            left,
            in_a_row: 0,
            pulse: None,
        }
    }

    /// Lets a connection feel whether its client reads.
    pub(super) fn feel(&mut self, pulse: &Arc<Pulse>) {
        pulse.goes_on();
        self.pulse = Some(pulse.clone());
    }

    /// The next stretch of bytes; the first has the beginning, the last the end.
    fn next(&mut self) -> Option<Vec<u8>> {
        self.end.as_ref()?;
        let mut out = std::mem::take(&mut self.beginning).to_vec();
        if let Some(run) = self.pieces.next() {
            self.around.write(&mut out, &run);
        }
        if self.pieces.is_done()
            && let Some(end) = self.end.take()
        {
            if let Around::Text { cut, .. } = self.around {
                out.truncate(out.len() - cut);
            }
            out.extend(end);
        }
        Some(out)
    }
}

impl Drop for LongBody {
    fn drop(&mut self) {
        if let Some(pulse) = &self.pulse {
            pulse.is_finished();
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
        if self.in_a_row == IN_A_ROW {
            self.in_a_row = 0;
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        self.in_a_row += 1;
        if let Some(pulse) = &self.pulse {
            pulse.goes_on();
        }
        let next = self.next();
        self.left -= next.as_ref().map_or(0, |bytes| bytes.len() as u64);
        Poll::Ready(next.map(|bytes| Ok(Frame::data(bytes.into()))))
    }

    fn is_end_stream(&self) -> bool {
        self.end.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}
