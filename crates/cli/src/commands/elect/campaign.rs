//! Waiting to be elected, leading while the command runs, and resigning.

use std::time::Duration;

use frazil::coord::time::boot_time;
use frazil::election::{Candidate, Elections, LeaderInfo, Leadership, Observer};
use rustix::process::Signal;

use super::deadline::Deadline;
use super::reach::{Purpose, reach};
use super::signals::{Signals, number};
use super::terms::Terms;
use super::ward::Ward;
use crate::args::ElectArgs;
use crate::output::{self, Exit, Failure, say};
use crate::words::printable;

/// How long the store is told of a resignation before we end all the same.
const RESIGN_PATIENCE: Duration = Duration::from_secs(5);
/// The longest pause between two looks at what is left of a leadership: timers stand still while the
/// machine sleeps, and deadlines do not.
const LOOK_AGAIN: Duration = Duration::from_millis(250);

pub(super) async fn run(args: &ElectArgs, terms: &Terms) -> Result<(), Failure> {
    let mut signals = Signals::new()?;
    let mut deadline = Deadline::new().map_err(|error| {
        Failure::new(Exit::Unavailable, format_args!("no file in memory: {error}"))
    })?;
    let leadership = tokio::select! {
        elected = elected(args, terms) => elected?,
        signal = signals.next() => return Err(Failure::Interrupted(signal)),
    };
    let token = leadership.token();
    say(format_args!("leading {} as {} with token {token}", terms.name, shown(terms)));
    prolong(&mut deadline, &leadership, terms)?;
    let variables = [
        ("FRAZIL_FENCE", token.to_string()),
        ("FRAZIL_ELECTION", terms.name.clone()),
        ("FRAZIL_INSTANCE", terms.settings.instance.clone()),
    ];
    let ward = Ward::start(&args.command, &variables, &deadline)?;
    let watch = Watch { ward, deadline, leadership: &leadership, terms, signals };
    let outcome = watch.over().await;
    resign(leadership, terms).await;
    outcome
}

fn shown(terms: &Terms) -> String {
    printable(&terms.settings.instance)
}

/// Opens the store and waits until elected.
async fn elected(args: &ElectArgs, terms: &Terms) -> Result<Leadership, Failure> {
    let elections = Elections::new(reach(args, terms, Purpose::Contend).await?);
    let candidate = elections.candidate(&terms.name, terms.settings.clone());
    let candidate = candidate.map_err(Failure::usage)?;
    if args.once {
        return elected_at_once(&elections, &candidate).await;
    }
    loop {
        let leadership = elected_some_day(&candidate).await?;
        // The answer to a claim may have been long on its way.
        if leadership.ensure(terms.grace).is_ok() {
            return Ok(leadership);
        }
        say("elected, but too late to begin: trying again");
    }
}

async fn elected_some_day(candidate: &Candidate) -> Result<Leadership, Failure> {
    let mut observer = candidate.observe();
    let mut campaign = std::pin::pin!(candidate.campaign());
    // Whoever waits is told for whom, once.
    tokio::select! {
        biased;
        elected = &mut campaign => return Ok(elected?),
        leader = somebody_else(&mut observer, candidate) => {
            say(format_args!("waiting: {} leads {}", described(&leader), candidate.name()));
        }
    }
    Ok(campaign.await?)
}

/// Elected, unless somebody else is.
async fn elected_at_once(
    elections: &Elections,
    candidate: &Candidate,
) -> Result<Leadership, Failure> {
    if let Some(leader) = elections.leader(candidate.name()).await? {
        return Err(taken(&leader));
    }
    let mut observer = candidate.observe();
    tokio::select! {
        biased;
        elected = candidate.campaign() => Ok(elected?),
        leader = somebody_else(&mut observer, candidate) => Err(taken(&leader)),
    }
}

/// Waits until somebody leads who is not this process.
async fn somebody_else(observer: &mut Observer, candidate: &Candidate) -> LeaderInfo {
    loop {
        if let Some(leader) = observer.changed().await.filter(|leader| !candidate.is(leader)) {
            return leader;
        }
    }
}

fn taken(leader: &LeaderInfo) -> Failure {
    let who = described(leader);
    Failure::new(Exit::No, format_args!("{who} leads {}; it is not waited for", leader.name))
}

fn described(leader: &LeaderInfo) -> String {
    let (instance, host) = (printable(&leader.instance), printable(&leader.host));
    format!("{instance} on {host}")
}

/// Leads until the command has ended, by itself or by us.
struct Watch<'a> {
    ward: Ward,
    deadline: Deadline,
    leadership: &'a Leadership,
    terms: &'a Terms,
    signals: Signals,
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
            End::Command => self.finish(),
            End::Signal(signal) => {
                self.stop(number(signal)).await?;
                self.finish()
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

    /// The command ended: so do we, as it did.
    fn finish(self) -> Result<(), Failure> {
        match self.ward.finish()? {
            0 => Ok(()),
            code => Err(Failure::Ended(code)),
        }
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
