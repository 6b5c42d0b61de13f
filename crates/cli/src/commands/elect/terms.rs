//! How an election is held, from the flags and the environment.

use std::env;
use std::time::Duration;

use frazil::coord::{Group, Slot};
use frazil::election::Settings;

use crate::args::{ElectArgs, TermsArg, duration};
use crate::output::Failure;
use crate::words::span;

/// The settings of an election, checked.
#[derive(Clone, Debug)]
pub(super) struct Terms {
    pub(super) name: String,
    pub(super) settings: Settings,
    /// How long a command has to end.
    pub(super) grace: Duration,
}

impl Terms {
    pub(super) fn of(args: &ElectArgs) -> Result<Self, Failure> {
        let name = args.name.clone();
        Slot::named(Group::Elections, &name).map_err(Failure::usage)?;
        let settings = settings(&args.terms)?;
        settings.checked().map_err(Failure::usage)?;
        let grace = args.grace.unwrap_or(settings.ttl / 4);
        let most = grace_max(&settings);
        if grace > most {
            return Err(Failure::usage(format_args!(
                "a grace of {} is too long for a TTL of {} and a heartbeat of {}: a renewal that \
                 comes a little late would end the command; use at most {}",
                span(grace),
                span(settings.ttl),
                span(settings.heartbeat),
                span(most)
            )));
        }
        Ok(Self { name, settings, grace })
    }

    /// How long before the end of a leadership a command is killed that has not ended by then.
    pub(super) fn kill_margin(&self) -> Duration {
        self.grace / 4
    }
}

/// The settings that were given, over the defaults.
pub(in crate::commands) fn settings(args: &TermsArg) -> Result<Settings, Failure> {
    let mut settings = Settings::default();
    if let Some(ttl) = args.ttl.map_or_else(|| alias("LOCK_TTL"), |ttl| Ok(Some(ttl)))? {
        settings.ttl = ttl;
    }
    let heartbeat = match args.heartbeat {
        Some(heartbeat) => Some(heartbeat),
        None => alias("HEARTBEAT_INTERVAL")?,
    };
    settings.heartbeat = heartbeat.unwrap_or(settings.ttl * 3 / 10);
    let retry = match args.retry {
        Some(retry) => Some(retry),
        None => alias("RETRY_INTERVAL")?,
    };
    settings.retry = retry.unwrap_or(settings.ttl / 5);
    settings.lock_delay = args.lock_delay.unwrap_or(settings.lock_delay);
    if let Some(host) = args.hostname.clone().or_else(|| text("HOSTNAME")) {
        settings.instance = format!("{host}:{}", std::process::id());
        settings.host = host;
    }
    if let Some(instance) = args.instance.clone().or_else(|| text("INSTANCE_ID")) {
        settings.instance = instance;
    }
    Ok(settings)
}

/// With a longer grace, a single renewal that fails would end the command.
fn grace_max(settings: &Settings) -> Duration {
    let Settings { ttl, heartbeat, .. } = settings;
    (*ttl - *ttl / 20).saturating_sub(*heartbeat * 2)
}

/// A time from a variable that others use for the same. An empty one says nothing.
fn alias(name: &str) -> Result<Option<Duration>, Failure> {
    let Some(text) = text(name) else { return Ok(None) };
    let wrong = |why| Failure::usage(format_args!("LEADER_ELECTION_{name}: {why}"));
    duration(&text).map(Some).map_err(wrong)
}

fn text(name: &str) -> Option<String> {
    env::var(format!("LEADER_ELECTION_{name}")).ok().filter(|text| !text.is_empty())
}
