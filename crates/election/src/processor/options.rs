//! The options of a processor. Every option goes together with every other.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::balance::Balance;
use super::restart::{Restart, WhenDone};
use crate::Settings;

/// A time for each job, by its name.
#[derive(Clone)]
pub(super) struct PerJob(pub(super) Arc<dyn Fn(&str) -> Duration + Send + Sync>);

/// What can be set of a processor.
#[derive(Clone, Debug)]
pub(super) struct Options {
    pub(super) settings: Settings,
    pub(super) start_delay: Option<PerJob>,
    pub(super) voluntary_timeout: Option<PerJob>,
    pub(super) strict: bool,
    pub(super) quota: Option<usize>,
    pub(super) blocks_without_jobs: bool,
    pub(super) drain: Duration,
    pub(super) stop_budget: Option<Duration>,
    pub(super) restart: Restart,
    pub(super) when_done: WhenDone,
    pub(super) balance: Option<Balance>,
    pub(super) rank_step: Duration,
    pub(super) settle: Duration,
}

/// Long against the way from a release to the next claim on a local network, short against what
/// anybody notices.
const RANK_STEP: Duration = Duration::from_millis(10);
/// Nodes that are started together see each other before they take jobs.
const SETTLE: Duration = Duration::from_millis(250);
/// Work that needs longer to stop says so.
const DRAIN: Duration = Duration::from_secs(30);

impl Default for Options {
    fn default() -> Self {
        Self {
            settings: Settings::default(),
            start_delay: None,
            voluntary_timeout: None,
            strict: false,
            quota: None,
            blocks_without_jobs: false,
            drain: DRAIN,
            stop_budget: None,
            restart: Restart::default(),
            when_done: WhenDone::default(),
            balance: Some(Balance::default()),
            rank_step: RANK_STEP,
            settle: SETTLE,
        }
    }
}

impl Options {
    /// How long before the end of a leadership that is not renewed its work is cancelled.
    pub(super) fn stop_budget(&self) -> Duration {
        self.stop_budget.unwrap_or(self.settings.ttl / 4)
    }

    /// How long before that end work that has not stopped is aborted.
    pub(super) fn abort_margin(&self) -> Duration {
        self.stop_budget() / 4
    }

    /// The longest stop budget: between two renewals that succeed, and even if one of them fails,
    /// more than this is left.
    pub(super) fn stop_budget_max(&self) -> Duration {
        (self.settings.ttl - self.settings.ttl / 20).saturating_sub(self.settings.heartbeat * 2)
    }
}

impl fmt::Debug for PerJob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PerJob")
    }
}
