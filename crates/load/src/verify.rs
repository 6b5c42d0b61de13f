//! Everything that was received is checked, on a thread of its own.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use frazil_id::{Id, Layout, Parts};
use tokio::sync::mpsc;

use crate::check::{Answer, Check, Verdict};
use crate::moment::{cpu_of_thread, now};
use crate::tally::nanoseconds;

/// Runs that are handed over together at the most.
const RUNS: usize = 4096;
/// Runs of all connections that wait for more before they are handed over: 4 MB.
const RUNS_OF_ALL: usize = 1 << 18;
/// What was received is handed over after so long even if it is little: whoever watches sees it checked.
const HAND_OVER_AFTER: Duration = Duration::from_millis(250);
/// What is handed over and not checked yet, at the most: 8 MB.
const QUEUE: usize = 64;

/// The thread that checks.
#[derive(Debug)]
pub(crate) struct Verifier {
    thread: JoinHandle<(Verdict, Duration)>,
    sender: mpsc::Sender<Chunk>,
    progress: Arc<Progress>,
    stride: u64,
    runs_max: usize,
}

/// How far the check is.
#[derive(Debug, Default)]
struct Progress {
    checked: AtomicU64,
    findings: AtomicU64,
    /// How long connections have waited for it, all together.
    stalled_ns: AtomicU64,
}

/// What came of a check.
#[derive(Debug)]
pub(crate) struct Verified {
    pub(crate) verdict: Verdict,
    pub(crate) cpu: Duration,
    /// How long connections waited for it, all together.
    pub(crate) stalled: Duration,
}

/// IDs of one connection, in the order in which they came.
#[derive(Debug)]
struct Chunk {
    connection: usize,
    runs: Vec<(u64, u32)>,
    answers: Vec<Answer>,
}

impl Verifier {
    /// Begins to check what so many connections receive. A strict scope's IDs increase whichever
    /// worker they are of.
    pub(crate) fn start(layout: &Layout, is_strict: bool, connections: usize) -> io::Result<Self> {
        let (sender, chunks) = mpsc::channel(QUEUE);
        let progress = Arc::new(Progress::default());
        let (check, told) = (Check::new(layout, is_strict), Arc::clone(&progress));
        let thread = thread::Builder::new()
            .name("verify".to_owned())
            .spawn(move || check_all(check, chunks, &told))?;
        let runs_max = (RUNS_OF_ALL / connections.max(1)).clamp(64, RUNS);
        Ok(Self { thread, sender, progress, stride: stride(layout), runs_max })
    }

    /// For one connection.
    pub(crate) fn sender(&self, connection: usize) -> Sender {
        Sender {
            connection,
            runs: Vec::new(),
            answers: Vec::new(),
            is_new: true,
            sender: self.sender.clone(),
            progress: Arc::clone(&self.progress),
            stride: self.stride,
            runs_max: self.runs_max,
            handed_over: now(),
        }
    }

    /// IDs that were checked so far, and what is wrong with them.
    pub(crate) fn checked(&self) -> (u64, u64) {
        // Relaxed here and below: numbers to look at.
        let read = |number: &AtomicU64| number.load(Ordering::Relaxed);
        (read(&self.progress.checked), read(&self.progress.findings))
    }

    /// Waits until everything is checked; all senders must be gone.
    pub(crate) fn finish(self) -> Verified {
        let Self { thread, sender, progress, .. } = self;
        drop(sender);
        let (verdict, cpu) = thread.join().expect("the check does not panic");
        Verified { verdict, cpu, stalled: progress.stalled() }
    }
}

impl Progress {
    fn stalled(&self) -> Duration {
        Duration::from_nanos(self.stalled_ns.load(Ordering::Relaxed))
    }
}

/// What lies between two neighbouring IDs of one worker and tick.
fn stride(layout: &Layout) -> u64 {
    let id = |sequence| layout.encode(Parts { tick: 0, worker: 0, sequence }).map(Id::to_u64);
    match (id(0), id(1)) {
        (Ok(one), Ok(other)) => other - one,
        // A sequence of a single number has no neighbours.
        _ => 1,
    }
}

fn check_all(
    mut check: Check,
    mut chunks: mpsc::Receiver<Chunk>,
    progress: &Progress,
) -> (Verdict, Duration) {
    let stride = stride(check.layout());
    while let Some(chunk) = chunks.blocking_recv() {
        check.answers(chunk.connection, &chunk.runs, stride, &chunk.answers);
        progress.checked.store(check.checked(), Ordering::Relaxed);
        progress.findings.store(check.findings(), Ordering::Relaxed);
    }
    (check.into_verdict(), cpu_of_thread())
}

/// Collects the IDs of one connection.
#[derive(Debug)]
pub(crate) struct Sender {
    connection: usize,
    runs: Vec<(u64, u32)>,
    answers: Vec<Answer>,
    /// Whether the next ID is the first of its answer.
    is_new: bool,
    sender: mpsc::Sender<Chunk>,
    progress: Arc<Progress>,
    stride: u64,
    runs_max: usize,
    /// When something was handed over last.
    handed_over: Instant,
}

impl Sender {
    /// An ID of the answer that is being read.
    pub(crate) fn id(&mut self, id: u64) {
        if let Some((first, count)) = self.runs.last_mut().filter(|_| !self.is_new)
            && id == first.wrapping_add(u64::from(*count).wrapping_mul(self.stride))
            && *count < u32::MAX
        {
            *count += 1;
            return;
        }
        self.is_new = false;
        self.runs.push((id, 1));
    }

    /// IDs of the answer that is being read, so far apart.
    pub(crate) fn run(&mut self, first: u64, count: u32, stride: u64) {
        if stride == self.stride && count > 0 {
            self.is_new = false;
            self.runs.push((first, count));
            return;
        }
        for place in 0..u64::from(count) {
            self.id(first.wrapping_add(place.wrapping_mul(stride)));
        }
    }

    /// That was all of an answer.
    pub(crate) fn end_of_answer(&mut self, worker: Option<u32>, asked: Option<u64>) {
        self.is_new = true;
        self.answers.push(Answer { runs_end: self.runs.len(), worker, asked });
    }

    /// The answer that is being read is none.
    pub(crate) fn forget_rest(&mut self) {
        self.is_new = true;
        self.runs.truncate(self.answers.last().map_or(0, |answer| answer.runs_end));
    }

    pub(crate) const fn is_full(&self) -> bool {
        self.runs.len() >= self.runs_max
    }

    /// Whether there is enough to hand over, or it has waited for long enough.
    pub(crate) fn is_due(&self, at: Instant) -> bool {
        let waited = at.saturating_duration_since(self.handed_over);
        self.is_full() || (waited >= HAND_OVER_AFTER && !self.answers.is_empty())
    }

    /// Gives what was collected to the check, and waits if that is too busy.
    pub(crate) async fn hand_over(&mut self) {
        let chunk = self.chunk();
        match self.sender.try_send(chunk) {
            Err(mpsc::error::TrySendError::Full(chunk)) => {
                let since = now();
                // The check ends when all senders have, so somebody receives.
                let _ = self.sender.send(chunk).await;
                self.stalled(since.elapsed());
            }
            Ok(()) | Err(mpsc::error::TrySendError::Closed(_)) => {}
        }
    }

    /// The same on a thread that may wait.
    pub(crate) fn hand_over_blocking(&mut self) {
        let chunk = self.chunk();
        match self.sender.try_send(chunk) {
            Err(mpsc::error::TrySendError::Full(chunk)) => {
                let since = now();
                let _ = self.sender.blocking_send(chunk);
                self.stalled(since.elapsed());
            }
            Ok(()) | Err(mpsc::error::TrySendError::Closed(_)) => {}
        }
    }

    fn stalled(&self, span: Duration) {
        self.progress.stalled_ns.fetch_add(nanoseconds(span), Ordering::Relaxed);
    }

    /// What was collected; at the end of an answer.
    fn chunk(&mut self) -> Chunk {
        self.is_new = true;
        self.handed_over = now();
        Chunk {
            connection: self.connection,
            runs: std::mem::take(&mut self.runs),
            answers: std::mem::take(&mut self.answers),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn little_is_checked_soon_and_not_at_once() {
        let verifier = Verifier::start(&Layout::FRAZIL, false, 8).unwrap();
        let mut sender = verifier.sender(0);
        let start = now();
        assert!(!sender.is_due(start + HAND_OVER_AFTER), "there is nothing");
        sender.id(1);
        sender.end_of_answer(None, Some(1));
        assert!(!sender.is_due(start));
        assert!(sender.is_due(now() + HAND_OVER_AFTER));
        sender.hand_over_blocking();
        assert!(!sender.is_due(start + HAND_OVER_AFTER), "it was handed over later than that");
        drop(sender);
        assert_eq!(verifier.finish().verdict.ids, 1);
    }
}
