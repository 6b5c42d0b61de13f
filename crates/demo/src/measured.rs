//! A demonstration that nobody watches: it measures.

use std::time::Duration;

use frazil_coord::internal::time::boot_time;
use tokio::sync::{mpsc, watch};

use crate::error::Error;
use crate::journal::{Journal, Note};
use crate::plan::Plan;
use crate::report::{PhaseReport, Report};
use crate::stage::{Rest, Stage};

/// How a demonstration came to its end.
#[derive(Debug)]
pub enum Ended<S> {
    /// It was played to its end.
    Played(Report),
    /// It was told to stop; the jobs were given back.
    Stopped(S),
}

/// Restarts every node once, or again and again for a duration, and tells what became of each phase.
///
/// # Errors
/// The store cannot be opened or used for this, the jobs cannot be run, or whatever `tell` fails with.
pub async fn measure<S, E: From<Error>>(
    plan: Plan,
    duration: Option<Duration>,
    stop: impl Future<Output = S>,
    tell: impl FnMut(&PhaseReport) -> Result<(), E>,
) -> Result<Ended<S>, E> {
    let plan = plan.checked()?;
    let store = plan.url.to_string();
    let (notes, noted) = mpsc::unbounded_channel();
    let (rest, rests) = watch::channel(Rest::default());
    let journal = Journal::new(plan.title(), plan.nodes, plan.jobs, boot_time());
    let mut audience = Audience { journal, noted, rest, told: 0, tell };
    let mut stage = Stage::new(plan, notes, rests);
    let stopped = audience.watch(play(&mut stage, duration), stop).await;
    stage.close().await;
    Ok(match stopped? {
        Some(why) => Ended::Stopped(why),
        None => Ended::Played(Report::of(&audience.journal, store)),
    })
}

/// Who notes what happens.
struct Audience<T> {
    journal: Journal,
    noted: mpsc::UnboundedReceiver<(Note, Duration)>,
    rest: watch::Sender<Rest>,
    /// How many phases were told.
    told: usize,
    tell: T,
}

impl<E: From<Error>, T: FnMut(&PhaseReport) -> Result<(), E>> Audience<T> {
    /// Watches a play to its end, or until it is stopped.
    async fn watch<S>(
        &mut self,
        play: impl Future<Output = Result<(), Error>>,
        stop: impl Future<Output = S>,
    ) -> Result<Option<S>, E> {
        let (mut play, mut stop) = (std::pin::pin!(play), std::pin::pin!(stop));
        loop {
            tokio::select! {
                biased;
                why = &mut stop => return Ok(Some(why)),
                Some((note, at)) = self.noted.recv() => self.note(note, at)?,
                played = &mut play => break played?,
            }
        }
        while let Ok((note, at)) = self.noted.try_recv() {
            self.note(note, at)?;
        }
        Ok(None)
    }

    fn note(&mut self, note: Note, at: Duration) -> Result<(), E> {
        self.journal.note(note, at);
        self.rest.send_replace(self.journal.rest());
        let phases = &self.journal.phases;
        let over = phases.iter().take_while(|phase| phase.ended.is_some()).count();
        for phase in &phases[self.told.min(over)..over] {
            (self.tell)(&PhaseReport::of(phase))?;
        }
        self.told = over;
        Ok(())
    }
}

/// Restarts all nodes, again and again for as long as wanted.
async fn play(stage: &mut Stage, duration: Option<Duration>) -> Result<(), Error> {
    let until = boot_time() + duration.unwrap_or_default();
    stage.open().await?;
    loop {
        stage.roll().await?;
        if boot_time() >= until {
            return Ok(());
        }
    }
}
