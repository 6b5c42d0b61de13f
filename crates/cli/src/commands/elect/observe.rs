//! Following the leader of an election.

use frazil::election::{Elections, LeaderInfo};
use serde::Serialize;

use super::reach::{Purpose, reach};
use super::signals::Signals;
use super::terms::Terms;
use crate::args::ElectRunArgs;
use crate::output::{Data, Exit, Failure};
use crate::words::{instant, printable};

pub(super) async fn run(args: &ElectRunArgs, terms: &Terms) -> Result<(), Failure> {
    let mut signals = Signals::new()?;
    tokio::select! {
        outcome = follow(args, terms) => outcome,
        signal = signals.next() => Err(Failure::Interrupted(signal)),
    }
}

async fn follow(args: &ElectRunArgs, terms: &Terms) -> Result<(), Failure> {
    let elections = Elections::new(reach(args, terms, Purpose::Look).await?);
    if args.once {
        let leader = elections.leader(&terms.name).await?;
        print(args, terms, leader.as_ref())?;
        return if leader.is_some() { Ok(()) } else { Err(Failure::Reported(Exit::No)) };
    }
    let mut observer = elections.observe(&terms.name).map_err(Failure::usage)?;
    loop {
        let leader = observer.changed().await;
        print(args, terms, leader.as_ref())?;
    }
}

fn print(args: &ElectRunArgs, terms: &Terms, leader: Option<&LeaderInfo>) -> Result<(), Failure> {
    let mut data = Data::new();
    let name = &terms.name;
    match leader {
        _ if args.json => data.json(&Seen { election: name, leader: leader.map(View::of) })?,
        None => data.text(format_args!("{name} has no leader"))?,
        Some(leader) => data.text(format_args!(
            "{name} is led by {} on {} with token {} since {}",
            printable(&leader.instance),
            printable(&leader.host),
            leader.token,
            instant(leader.elected_ms)
        ))?,
    }
    data.flush()
}

/// One object of `--json`.
#[derive(Serialize)]
struct Seen<'a> {
    election: &'a str,
    leader: Option<View<'a>>,
}

/// A leader as a user sees it.
#[derive(Debug, Serialize)]
pub(in crate::commands) struct View<'a> {
    instance: &'a str,
    host: &'a str,
    pid: u32,
    version: &'a str,
    /// A string: tokens exceed what a JSON number holds everywhere.
    token: String,
    elected_ms: u64,
    elected: String,
    renewed_ms: u64,
    renewed: String,
    metadata: &'a std::collections::BTreeMap<String, String>,
}

impl<'a> View<'a> {
    pub(in crate::commands) fn of(leader: &'a LeaderInfo) -> Self {
        Self {
            instance: &leader.instance,
            host: &leader.host,
            pid: leader.pid,
            version: &leader.version,
            token: leader.token.to_string(),
            elected_ms: leader.elected_ms,
            elected: instant(leader.elected_ms),
            renewed_ms: leader.renewed_ms,
            renewed: instant(leader.renewed_ms),
            metadata: &leader.metadata,
        }
    }
}
