//! `frazil elect ls`.

use comfy_table::{Table, presets};
use frazil::election::{ElectionInfo, Elections};
use serde::Serialize;

use super::observe::View;
use crate::args::ElectLsArgs;
use crate::output::{Data, Failure, say};
use crate::words::{instant, printable};

pub(super) async fn run(args: &ElectLsArgs) -> Result<(), Failure> {
    let elections = Elections::new(args.place.look().await?);
    let standings = elections.leaders().await?;
    let mut data = Data::new();
    if args.json {
        for standing in &standings {
            data.json(&Election::of(standing))?;
        }
    } else {
        data.text(table(&standings))?;
        if standings.is_empty() {
            say("no election was ever held, or all were forgotten");
        }
    }
    data.flush()
}

/// An election as a user sees it.
#[derive(Debug, Serialize)]
struct Election<'a> {
    election: &'a str,
    state: &'static str,
    leader: Option<View<'a>>,
    /// Whoever leads, or led last.
    last: Option<View<'a>>,
    /// A string: tokens exceed what a JSON number holds everywhere. Of the last leader if there is
    /// none now.
    token: String,
    /// How long the leadership lasts unless it is renewed, where time ends it.
    seconds_left: Option<f64>,
}

impl<'a> Election<'a> {
    fn of(standings: &'a ElectionInfo) -> Self {
        Self {
            election: &standings.name,
            state: state(standings),
            leader: standings.leader.as_ref().map(View::of),
            last: standings.last.as_ref().map(View::of),
            token: standings.last_token.to_string(),
            seconds_left: standings.expires_in_ms.map(seconds),
        }
    }
}

const fn state(standings: &ElectionInfo) -> &'static str {
    if standings.leader.is_some() { "led" } else { "free" }
}

#[expect(clippy::cast_precision_loss, reason = "shown to people, to the millisecond")]
fn seconds(ms: u64) -> f64 {
    ms as f64 / 1000.0
}

fn table(standings: &[ElectionInfo]) -> String {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    let header = ["ELECTION", "STATE", "LEADER", "HOST", "TOKEN", "SINCE", "HEARTBEAT"];
    table.set_header(header.into_iter().chain(["SECONDS LEFT"]));
    let text = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
    for standing in standings {
        let (leader, last) = (standing.leader.as_ref(), standing.last.as_ref());
        table.add_row([
            standing.name.clone(),
            state(standing).to_owned(),
            text(leader.map(|leader| printable(&leader.instance))),
            text(leader.map(|leader| printable(&leader.host))),
            standing.last_token.to_string(),
            text(leader.map(|leader| instant(leader.elected_ms))),
            text(last.map(|last| instant(last.renewed_ms))),
            text(standing.expires_in_ms.map(|left| format!("{:.1}", seconds(left)))),
        ]);
    }
    table.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>().join("\n")
}
