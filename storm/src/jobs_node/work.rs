//! The work of every job: to write.

use std::path::Path;
use std::time::Duration;

use frazil_coord::internal::time::boot_time;
use frazil_election::fence::{FencedFile, WriteOutcome};
use frazil_election::processor::{BoxError, Run};
use tokio::sync::mpsc;
use tokio::time::MissedTickBehavior;

use super::line::{Attempt, Line};

/// What a job writes with.
#[derive(Clone, Debug)]
pub(super) struct Pen {
    file: FencedFile,
    every: Duration,
    lines: mpsc::UnboundedSender<Line>,
}

impl Pen {
    pub(super) fn new(path: &Path, every: Duration, lines: mpsc::UnboundedSender<Line>) -> Self {
        Self { file: FencedFile::new(path), every, lines }
    }

    /// Writes, whether or not this node still leads: it is for the fence to refuse.
    async fn write(&self, run: &Run) -> Result<(), BoxError> {
        // Before the look at the leadership: whoever is stopped between the two says nothing untrue.
        let asked = boot_time();
        let (token, led) = (run.token(), run.is_leader());
        let (file, content) = (self.file.clone(), format!("{token}\n"));
        let written = tokio::task::spawn_blocking(move || file.write(token, content.as_bytes()));
        let highest = match written.await?? {
            WriteOutcome::Accepted => None,
            WriteOutcome::Refused { highest } => Some(highest),
        };
        let job = run.name().to_owned();
        // When the node is over nobody listens.
        let _ = self.lines.send(Line::wrote(Attempt { job, token, asked, led, highest }));
        Ok(())
    }
}

pub(super) async fn work(run: Run, pen: Pen) -> Result<(), BoxError> {
    let mut turns = tokio::time::interval(pen.every);
    turns.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            biased;
            // First, so that whoever wakes up late has its moment before it is told to stop.
            _ = turns.tick() => pen.write(&run).await?,
            () = run.cancelled() => return Ok(()),
        }
        // Also where a write takes longer than the time between two.
        if run.is_cancelled() {
            return Ok(());
        }
    }
}
