//! A demonstration that nobody watches: it measures.

use std::time::Duration;

use frazil::coord::time::boot_time;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, watch};

use super::journal::{Journal, Note};
use super::report::{PhaseReport, Report};
use super::stage::{Plan, Rest, Stage};
use crate::args::JobsDemoArgs;
use crate::output::{Data, Exit, Failure, Signal};

pub(super) async fn run(plan: Plan, args: &JobsDemoArgs) -> Result<(), Failure> {
    let store = plan.url.to_string();
    let (notes, noted) = mpsc::unbounded_channel();
    let (rest, rests) = watch::channel(Rest::default());
    let journal = Journal::new(title(&plan), plan.nodes, plan.jobs, boot_time());
    let mut audience = Audience { journal, noted, rest, told: 0 };
    let mut stage = Stage::new(plan, notes, rests);
    let played = audience.watch(play(&mut stage, args.duration)).await;
    let is_well = audience.journal.is_settled() && audience.journal.overlaps == 0;
    if played.is_ok() {
        let mut data = Data::new();
        data.json(&Report::of(&audience.journal, &store))?;
        data.flush()?;
    }
    stage.close().await;
    played?;
    if is_well { Ok(()) } else { Err(Failure::Reported(Exit::No)) }
}

/// Who notes what happens.
struct Audience {
    journal: Journal,
    noted: mpsc::UnboundedReceiver<(Note, Duration)>,
    rest: watch::Sender<Rest>,
    /// How many phases were printed.
    told: usize,
}

impl Audience {
    /// Watches a play to its end, or until it is interrupted.
    async fn watch(
        &mut self,
        play: impl Future<Output = Result<(), Failure>>,
    ) -> Result<(), Failure> {
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        let mut play = std::pin::pin!(play);
        loop {
            tokio::select! {
                biased;
                _ = interrupt.recv() => return Err(Failure::Interrupted(Signal::Interrupt)),
                _ = terminate.recv() => return Err(Failure::Interrupted(Signal::Terminate)),
                Some((note, at)) = self.noted.recv() => self.note(note, at)?,
                played = &mut play => break played?,
            }
        }
        while let Ok((note, at)) = self.noted.try_recv() {
            self.note(note, at)?;
        }
        Ok(())
    }

    fn note(&mut self, note: Note, at: Duration) -> Result<(), Failure> {
        self.journal.note(note, at);
        self.rest.send_replace(self.journal.rest());
        let phases = &self.journal.phases;
        let over = phases.iter().take_while(|phase| phase.ended.is_some()).count();
        if over > self.told {
            let mut data = Data::new();
            for phase in &phases[self.told..over] {
                data.json(&PhaseReport::of(phase))?;
            }
            data.flush()?;
            self.told = over;
        }
        Ok(())
    }
}

pub(super) fn title(plan: &Plan) -> String {
    let (jobs, nodes) = (plan.jobs, plan.nodes);
    // The name of a temporary directory says nothing.
    let store = plan.url.to_string();
    let store = store.split(['/', '?']).next().unwrap_or_default().trim_end_matches(':');
    format!("frazil jobs demo: {jobs} jobs on {nodes} nodes, store {store}")
}

/// Restarts all nodes, again and again for as long as wanted.
async fn play(stage: &mut Stage, duration: Option<Duration>) -> Result<(), Failure> {
    let until = boot_time() + duration.unwrap_or_default();
    stage.open().await?;
    loop {
        stage.roll().await?;
        if boot_time() >= until {
            return Ok(());
        }
    }
}
