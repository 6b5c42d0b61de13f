//! Waiting to be elected.

use std::time::Duration;

use frazil::election::{Candidate, Elections, LeaderInfo, Leadership, Observer, Periodic, Turn};
use tokio::time::timeout;

use super::reach::{Purpose, reach};
use super::terms::Terms;
use crate::args::ElectRunArgs;
use crate::output::{Exit, Failure, say};
use crate::words::{instant, printable, span};

/// Opens the store and waits until elected, for as long as may be waited. `None` if the command has
/// been run in this period, which is said.
pub(super) async fn elected(
    args: &ElectRunArgs,
    terms: &Terms,
) -> Result<Option<Leadership>, Failure> {
    let Some(limit) = args.wait else { return elected_some_day(args, terms).await };
    timeout(limit, elected_some_day(args, terms)).await.unwrap_or_else(|_| {
        let (name, limit) = (&terms.name, span(limit));
        let why = format_args!("not elected leader of {name} within {limit}: given up");
        Err(Failure::new(Exit::WaitedInVain, why))
    })
}

async fn elected_some_day(
    args: &ElectRunArgs,
    terms: &Terms,
) -> Result<Option<Leadership>, Failure> {
    let elections = Elections::new(reach(args, terms, Purpose::Contend).await?);
    let candidate = elections.candidate(&terms.name, terms.settings.clone());
    let candidate = candidate.map_err(Failure::usage)?;
    if args.once {
        return elected_at_once(&elections, &candidate).await.map(Some);
    }
    loop {
        let leadership = match args.every {
            None => waited_for(&candidate, candidate.campaign()).await?,
            Some(every) => match elected_in_turn(&candidate, every).await? {
                Some(leadership) => leadership,
                None => return Ok(None),
            },
        };
        // The answer to a claim may have been long on its way.
        if leadership.ensure(terms.grace).is_ok() {
            return Ok(Some(leadership));
        }
        say("elected, but too late to begin: trying again");
    }
}

/// Waits for a campaign. Whoever waits is told for whom, once.
async fn waited_for<T>(
    candidate: &Candidate,
    campaign: impl Future<Output = Result<T, frazil::coord::Error>>,
) -> Result<T, Failure> {
    let mut observer = candidate.observe();
    let mut campaign = std::pin::pin!(campaign);
    tokio::select! {
        biased;
        elected = &mut campaign => return Ok(elected?),
        leader = somebody_else(&mut observer, candidate) => {
            say(format_args!("waiting: {} leads {}", described(&leader), candidate.name()));
        }
    }
    Ok(campaign.await?)
}

/// Elected, unless somebody else was in this period.
async fn elected_in_turn(
    candidate: &Candidate,
    every: Duration,
) -> Result<Option<Leadership>, Failure> {
    let periodic = Periodic::new(candidate.clone(), every);
    let turn = periodic.campaign(|last, left| {
        let (name, since) = (&last.name, instant(last.elected_ms));
        say(format_args!(
            "waiting: {name} was last run at {since}, and can be again in {left:.0?}"
        ));
    });
    match waited_for(candidate, turn).await? {
        Turn::Elected(leadership) => Ok(Some(leadership)),
        Turn::Taken(last) => {
            let (name, when, who) = (&last.name, instant(last.elected_ms), described(&last));
            let every = span(every);
            say(format_args!(
                "not run: {who} was elected for {name} at {when}, and it is run once in {every}"
            ));
            Ok(None)
        }
    }
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
