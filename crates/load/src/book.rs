//! The record of one connection: times for the tally, IDs for the verifier.

use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;

use crate::fault::Fault;
use crate::moment::now;
use crate::schedule::{Times, Unsent};
use crate::tally::Tally;
use crate::verify::Sender;

/// The book of one connection.
#[derive(Debug)]
pub(crate) struct Book {
    /// IDs that each request asks for.
    batch: u64,
    times: Times,
    tally: Arc<Mutex<Tally>>,
    verify: Option<Sender>,
    due: Instant,
    /// IDs of the answer that is being read.
    count: u64,
    /// What failed last.
    fault: Option<Fault>,
}

impl Book {
    pub(crate) fn new(
        batch: u64,
        times: Times,
        tally: Arc<Mutex<Tally>>,
        verify: Option<Sender>,
    ) -> Self {
        Self { batch, times, tally, verify, due: times.start, count: 0, fault: None }
    }

    /// A request is due since then, and is sent now.
    pub(crate) fn begin(&mut self, due: Instant) {
        self.due = due;
        if self.times.count(due) {
            let behind = now().saturating_duration_since(due);
            self.with_tally(|tally| tally.behind = tally.behind.max(behind));
        }
    }

    /// Since when the request is due.
    pub(crate) const fn due(&self) -> Instant {
        self.due
    }

    /// An ID of the answer.
    pub(crate) fn id(&mut self, id: u64) {
        self.count += 1;
        if let Some(verify) = &mut self.verify {
            verify.id(id);
        }
    }

    /// IDs of the answer that are evenly apart.
    pub(crate) fn run(&mut self, first: u64, count: u32, stride: u64) {
        self.count += u64::from(count);
        if let Some(verify) = &mut self.verify {
            verify.run(first, count, stride);
        }
    }

    /// IDs of the answer, as eight bytes each.
    pub(crate) fn ids(&mut self, bytes: &[u8]) {
        let (ids, _) = bytes.as_chunks();
        self.count += ids.len() as u64;
        if let Some(verify) = &mut self.verify {
            ids.iter().for_each(|id| verify.id(u64::from_be_bytes(*id)));
        }
    }

    /// A whole answer was there at that time; it may have said which worker its IDs are of.
    pub(crate) fn answered(&mut self, at: Instant, worker: Option<u32>) {
        let (asked, got) = (self.batch, std::mem::take(&mut self.count));
        if let Some(verify) = &mut self.verify {
            verify.end_of_answer(worker, Some(asked));
        }
        match asked == got {
            true => self.done(self.due, at),
            false => self.failed(Fault::WrongCount { asked, got }),
        }
    }

    /// A part of a stream is there, which is no answer to one request.
    pub(crate) fn part(&mut self, worker: Option<u32>) {
        self.count = 0;
        if let Some(verify) = &mut self.verify {
            verify.end_of_answer(worker, None);
        }
    }

    /// A request that was due then has got its IDs.
    pub(crate) fn done(&mut self, due: Instant, at: Instant) {
        if self.times.count(due) {
            let (took, ids) = (at.saturating_duration_since(due), self.batch);
            self.with_tally(|tally| {
                tally.answered(took, ids);
                tally.last_answer = tally.last_answer.max(Some(at));
            });
        }
    }

    /// The server has refused a request: an entry, unless it is the end of the connection.
    pub(crate) fn refused(&mut self, fault: Fault) -> Result<(), Fault> {
        if fault.breaks_connection() {
            return Err(fault);
        }
        self.failed(fault);
        Ok(())
    }

    /// A request has failed; what came of its answer is not counted.
    pub(crate) fn failed(&mut self, fault: Fault) {
        self.count = 0;
        if let Some(verify) = &mut self.verify {
            verify.forget_rest();
        }
        if self.times.count(self.due) {
            let at = now();
            let waited = at.saturating_duration_since(self.due);
            self.with_tally(|tally| {
                tally.failed(&fault, waited);
                tally.last_fault = tally.last_fault.max(Some(at));
            });
        }
        self.fault = Some(fault);
    }

    /// What failed last, if anything did.
    pub(crate) const fn fault(&self) -> Option<&Fault> {
        self.fault.as_ref()
    }

    /// Requests that were due and will not be sent.
    pub(crate) fn unsent(&mut self, unsent: Unsent) {
        self.with_tally(|tally| tally.unsent(unsent));
    }

    /// Hands the IDs to the verifier once they are enough, or have waited for a moment.
    pub(crate) async fn hand_over_some(&mut self) {
        if let Some(verify) = self.verify.as_mut().filter(|verify| verify.is_due(now())) {
            verify.hand_over().await;
        }
    }

    /// Hands over what is left.
    pub(crate) async fn close(mut self) {
        if let Some(verify) = &mut self.verify {
            verify.hand_over().await;
        }
    }

    fn with_tally(&self, change: impl FnOnce(&mut Tally)) {
        change(&mut self.tally.lock());
    }
}
