//! A demonstration that nobody watches: it measures.

use std::time::Duration;

use frazil::coord::time::boot_time;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, watch};

use super::journal::Journal;
use super::picture::Recording;
use super::report::{PhaseReport, Report};
use super::stage::{Plan, Stage};
use crate::args::JobsDemoArgs;
use crate::output::{Data, Exit, Failure, Signal};

/// How often a picture is taken.
const FRAME: Duration = Duration::from_millis(100);

pub(super) async fn run(plan: Plan, args: &JobsDemoArgs) -> Result<(), Failure> {
    let store = plan.url.to_string();
    let (notes, mut noted) = mpsc::unbounded_channel();
    let (settle, settled) = watch::channel(false);
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut journal = Journal::new(title(&plan), plan.nodes, plan.jobs, boot_time());
    let mut recording = args.picture.as_ref().map(|_| Recording::new());
    let mut frames = tokio::time::interval(FRAME);
    let mut told = 0;
    let stage = Stage::new(plan, notes, settled);
    let mut play = std::pin::pin!(play(stage, args.duration));
    let stage = loop {
        tokio::select! {
            biased;
            _ = interrupt.recv() => return Err(Failure::Interrupted(Signal::Interrupt)),
            _ = terminate.recv() => return Err(Failure::Interrupted(Signal::Terminate)),
            Some((note, at)) = noted.recv() => {
                journal.note(note, at);
                settle.send_replace(journal.is_settled());
                told = tell(&journal, told)?;
            }
            _ = frames.tick(), if recording.is_some() => {
                journal.now = boot_time();
                if let Some(recording) = &mut recording {
                    recording.take(&journal);
                }
            }
            played = &mut play => break played?,
        }
    };
    while let Ok((note, at)) = noted.try_recv() {
        journal.note(note, at);
    }
    tell(&journal, told)?;
    let mut data = Data::new();
    data.json(&Report::of(&journal, &store))?;
    data.flush()?;
    let is_well = journal.is_settled() && journal.overlaps == 0;
    stage.close().await;
    if let (Some(recording), Some(file)) = (recording, &args.picture) {
        std::fs::write(file, recording.into_svg())?;
    }
    if is_well { Ok(()) } else { Err(Failure::Reported(Exit::No)) }
}

pub(super) fn title(plan: &Plan) -> String {
    let (jobs, nodes) = (plan.jobs, plan.nodes);
    // The name of a temporary directory says nothing.
    let store = plan.url.to_string();
    let store = store.split(['/', '?']).next().unwrap_or_default().trim_end_matches(':');
    format!("frazil jobs demo: {jobs} jobs on {nodes} nodes, store {store}")
}

/// Restarts all nodes, again and again for as long as wanted.
async fn play(mut stage: Stage, duration: Option<Duration>) -> Result<Stage, Failure> {
    let until = boot_time() + duration.unwrap_or_default();
    stage.open().await?;
    loop {
        stage.roll().await?;
        if boot_time() >= until {
            return Ok(stage);
        }
    }
}

/// Prints the phases that are over and were not printed yet; gives how many were.
fn tell(journal: &Journal, told: usize) -> Result<usize, Failure> {
    let over = journal.phases.iter().take_while(|phase| phase.ended.is_some()).count();
    if over > told {
        let mut data = Data::new();
        for phase in &journal.phases[told..over] {
            data.json(&PhaseReport::of(phase))?;
        }
        data.flush()?;
    }
    Ok(over)
}
