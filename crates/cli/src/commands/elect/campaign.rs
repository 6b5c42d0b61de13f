//! Leading while the command runs, and resigning.

use std::time::Duration;

use frazil::coord::internal::time::boot_time;
use frazil::election::Leadership;
use rustix::process::Signal;

use super::candidacy::elected;
use super::deadline::Deadline;
use super::signals::{Signals, number};
use super::terms::Terms;
use super::ward::Ward;
use crate::args::ElectRunArgs;
use crate::output::{self, Exit, Failure, say};
use crate::words::{printable, span};

/// How long the store is told of a resignation before we end all the same.
const RESIGN_PATIENCE: Duration = Duration::from_secs(5);
/// The longest pause between two looks at what is left of a leadership: timers stand still while the
/// machine sleeps, and deadlines do not.
const LOOK_AGAIN: Duration = Duration::from_millis(250);

pub(super) async fn run(args: &ElectRunArgs, terms: &Terms) -> Result<(), Failure> {
    let mut signals = Signals::new()?;
    let mut deadline = Deadline::new().map_err(|error| {
        Failure::new(Exit::Unavailable, format_args!("no file in memory: {error}"))
    })?;
    let elected = tokio::select! {
        elected = elected(args, terms) => elected?,
        signal = signals.next() => return Err(Failure::Interrupted(signal)),
    };
    // Somebody else has done it.
    let Some(leadership) = elected else { return Ok(()) };
    let token = leadership.token();
    say(format_args!("leading {} as {} with token {token}", terms.name, shown(terms)));
    prolong(&mut deadline, &leadership, terms)?;
    let variables = [
        ("FRAZIL_FENCE", token.to_string()),
        ("FRAZIL_ELECTION", terms.name.clone()),
        ("FRAZIL_INSTANCE", terms.settings.instance.clone()),
    ];
    let ward = Ward::start(&args.command, &variables, &deadline)?;
    let hold = args.hold;
    let watch = Watch { ward, deadline, leadership: &leadership, terms, signals, hold };
    let outcome = watch.over().await;
    resign(leadership, terms).await;
    outcome
}

fn shown(terms: &Terms) -> String {
    printable(&terms.settings.instance)
}

/// Leads until the command has ended, by itself or by us.
struct Watch<'a> {
    ward: Ward,
    deadline: Deadline,
    leadership: &'a Leadership,
    terms: &'a Terms,
    signals: Signals,
    /// How long to lead on after the command has succeeded.
    hold: Option<Duration>,
}

impl Watch<'_> {
    async fn over(mut self) -> Result<(), Failure> {
        let end = loop {
            prolong(&mut self.deadline, self.leadership, self.terms)?;
            tokio::select! {
                biased;
                ended = self.ward.ended() => break ended.map(|()| End::Command)?,
                () = self.leadership.expiring(self.terms.grace) => break End::Leadership,
                signal = self.signals.next() => break End::Signal(signal),
                () = tokio::time::sleep(LOOK_AGAIN) => {}
            }
        };
        match end {
            // The guard may have found that the time was up before we did.
            End::Command if !self.leadership.is_leader() => self.lost(),
            End::Command => self.succeed().await,
            End::Signal(signal) => {
                self.stop(number(signal)).await?;
                finish(self.ward)
            }
            End::Leadership => {
                say(format_args!("stopping the command: {}", self.reason()));
                self.stop(Signal::TERM).await?;
                self.lost()
            }
        }
    }

    /// Sends a signal, and kills after the grace, or before the leadership ends. Further signals are
    /// passed on.
    async fn stop(&mut self, signal: Signal) -> Result<(), Failure> {
        let until = boot_time() + self.terms.grace;
        self.ward.signal(signal);
        // What was stopped shall hear of it.
        self.ward.signal(Signal::CONT);
        loop {
            prolong(&mut self.deadline, self.leadership, self.terms)?;
            let margin = self.terms.kill_margin();
            let left = until.saturating_sub(boot_time());
            if left.is_zero() || self.leadership.ensure(margin).is_err() {
                self.ward.signal(Signal::KILL);
                return Ok(self.ward.ended().await?);
            }
            tokio::select! {
                biased;
                ended = self.ward.ended() => return Ok(ended?),
                () = self.leadership.expiring(margin) => {}
                signal = self.signals.next() => self.ward.signal(number(signal)),
                () = tokio::time::sleep(left.min(LOOK_AGAIN)) => {}
            }
        }
    }

    /// The command ended by itself: if it succeeded, the leadership is kept for a while.
    async fn succeed(self) -> Result<(), Failure> {
        let Self { ward, leadership, terms, mut signals, hold, .. } = self;
        finish(ward)?;
        let Some(hold) = hold else { return Ok(()) };
        say(format_args!("leading {} for another {}", terms.name, span(hold)));
        let until = boot_time() + hold;
        while leadership.is_leader() {
            let left = until.saturating_sub(boot_time());
            if left.is_zero() {
                return Ok(());
            }
            tokio::select! {
                () = leadership.cancelled() => {}
                _ = signals.next() => return Ok(()),
                () = tokio::time::sleep(left.min(LOOK_AGAIN)) => {}
            }
        }
        say(format_args!("the leadership of {} was lost after the command succeeded", terms.name));
        Ok(())
    }

    fn lost(self) -> Result<(), Failure> {
        let why = self.reason();
        self.ward.finish()?;
        Err(Failure::new(
            Exit::LeadershipLost,
            format_args!(
                "the leadership of {} is lost: {why}; the command was stopped, and can be \
                 started again",
                self.terms.name
            ),
        ))
    }

    fn reason(&self) -> String {
        match self.leadership.loss() {
            Some(loss) => printable(&loss.to_string()),
            None => "the store could not be told in time that it goes on".to_owned(),
        }
    }
}

/// The command ended: so do we, as it did.
fn finish(ward: Ward) -> Result<(), Failure> {
    match ward.finish()? {
        0 => Ok(()),
        code => Err(Failure::Ended(code)),
    }
}

/// Why a command is not watched any more.
enum End {
    Command,
    Leadership,
    Signal(output::Signal),
}

/// Tells the guard until when the command may run.
fn prolong(deadline: &mut Deadline, leadership: &Leadership, terms: &Terms) -> Result<(), Failure> {
    // Before: a little early is no harm.
    let now = boot_time();
    let left = leadership.remaining();
    let until = left.map(|left| now + left.saturating_sub(terms.kill_margin()));
    deadline.set(until).map_err(|error| {
        Failure::new(Exit::Unavailable, format_args!("the guard cannot be told: {error}"))
    })
}

async fn resign(leadership: Leadership, terms: &Terms) {
    if !leadership.is_leader() {
        return;
    }
    let told = tokio::time::timeout(RESIGN_PATIENCE, leadership.resign()).await;
    if let Ok(Ok(())) = told {
        return;
    }
    say(format_args!(
        "the store was not told that {} is free: others may have to wait for {:?}",
        terms.name, terms.settings.ttl
    ));
}
