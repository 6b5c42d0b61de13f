//! The settings of an election, from the flags and the environment.

use std::env;
use std::time::Duration;

use frazil::coord::{Group, Slot};
use frazil::election::Settings;

use crate::args::{ElectRunArgs, TermsArg};
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
    pub(super) fn of(args: &ElectRunArgs) -> Result<Self, Failure> {
        let name = args.name.clone().unwrap_or_default();
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

/// The settings that were given, over those of the environment.
fn settings(args: &TermsArg) -> Result<Settings, Failure> {
    let flags = [
        (Settings::TTL, args.ttl.map(span)),
        (Settings::HEARTBEAT, args.heartbeat.map(span)),
        (Settings::RETRY, args.retry.map(span)),
        (Settings::LOCK_DELAY, args.lock_delay.map(span)),
        (Settings::INSTANCE, args.instance.clone()),
        (Settings::HOST, args.hostname.clone()),
    ];
    let given = |name: &str| {
        let flag = flags.iter().find(|(variable, _)| variable.name == name);
        flag.and_then(|(_, text)| text.clone()).or_else(|| env::var(name).ok())
    };
    let mut settings = Settings::from_variables(given).map_err(Failure::usage)?;
    // An empty flag is a mistake, where an empty variable is none.
    if let Some(host) = &args.hostname {
        settings.host.clone_from(host);
    }
    if let Some(instance) = &args.instance {
        settings.instance.clone_from(instance);
    }
    Ok(settings)
}

/// With a longer grace, a single renewal that fails would end the command.
fn grace_max(settings: &Settings) -> Duration {
    let Settings { ttl, heartbeat, .. } = settings;
    (*ttl - *ttl / 20).saturating_sub(*heartbeat * 2)
}
