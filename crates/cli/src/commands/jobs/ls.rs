//! `frazil jobs ls`.

use comfy_table::{Table, presets};
use frazil::election::{ElectionInfo, Elections};
use serde::Serialize;

use crate::args::JobsLsArgs;
use crate::output::{Data, Failure, say};
use crate::words::{instant, printable};

/// Between the application and the job in the name of an election.
const MARK: &str = ":job:";

pub(super) async fn run(args: &JobsLsArgs) -> Result<(), Failure> {
    let elections = Elections::new(args.place.look().await?);
    let standings = elections.leaders().await?;
    let is_asked_for = |job: &Job| args.app.as_deref().is_none_or(|app| job.app == app);
    let jobs: Vec<_> = standings.iter().filter_map(Job::of).filter(is_asked_for).collect();
    let mut data = Data::new();
    if args.json {
        for job in &jobs {
            data.json(job)?;
        }
    } else {
        data.text(table(&jobs))?;
        if jobs.is_empty() {
            match &args.app {
                Some(app) => say(format_args!("no job of {app:?} was ever run")),
                None => say("no job was ever run"),
            }
        }
    }
    data.flush()
}

/// A job as a user sees it.
#[derive(Debug, Serialize)]
struct Job<'a> {
    app: &'a str,
    job: &'a str,
    state: &'static str,
    instance: Option<&'a str>,
    host: Option<&'a str>,
    /// A string: tokens exceed what a JSON number holds everywhere. Of the last run if there is none
    /// now.
    token: String,
    since: Option<String>,
    since_ms: Option<u64>,
    /// How long its leadership lasts unless it is renewed, where time ends it.
    seconds_left: Option<f64>,
}

impl<'a> Job<'a> {
    fn of(standings: &'a ElectionInfo) -> Option<Self> {
        let (app, job) = standings.name.split_once(MARK)?;
        let leader = standings.leader.as_ref();
        Some(Self {
            app,
            job,
            state: if leader.is_some() { "running" } else { "free" },
            instance: leader.map(|leader| leader.instance.as_str()),
            host: leader.map(|leader| leader.host.as_str()),
            token: standings.last_token.to_string(),
            since: leader.map(|leader| instant(leader.elected_ms)),
            since_ms: leader.map(|leader| leader.elected_ms),
            seconds_left: standings.expires_in_ms.map(seconds),
        })
    }
}

#[expect(clippy::cast_precision_loss, reason = "shown to people, to the millisecond")]
fn seconds(ms: u64) -> f64 {
    ms as f64 / 1000.0
}

fn table(jobs: &[Job]) -> String {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    table.set_header(["APP", "JOB", "STATE", "INSTANCE", "HOST", "TOKEN", "SINCE", "SECONDS LEFT"]);
    for job in jobs {
        let text = |value: Option<&str>| printable(value.unwrap_or("-"));
        table.add_row([
            job.app.to_owned(),
            job.job.to_owned(),
            job.state.to_owned(),
            text(job.instance),
            text(job.host),
            job.token.clone(),
            text(job.since.as_deref()),
            job.seconds_left.map_or_else(|| "-".to_owned(), |left| format!("{left:.1}")),
        ]);
    }
    table.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>().join("\n")
}
