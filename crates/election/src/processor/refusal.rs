//! The reason why a processor cannot be started.

use std::fmt;
use std::time::Duration;

use frazil_coord::{Group, NameError, NoRandomBits, Slot};

use super::node::job_slot;
use super::options::Options;
use crate::SettingsError;

/// Why a processor cannot be started.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProcessorError {
    /// It has no jobs.
    NoJobs,
    /// Two jobs have one name.
    Twice(String),
    /// The application's name does not fit.
    App(String),
    /// A job's name does not fit, together with the application's.
    Job(NameError),
    /// The times of its elections do not fit.
    Settings(SettingsError),
    /// Jobs would be cancelled between two renewals that succeed.
    StopBudget {
        /// The budget.
        budget: Duration,
        /// The longest that fits.
        most: Duration,
    },
    /// The operating system gives no random bits.
    NoRandomBits(NoRandomBits),
}

pub(super) fn check(app: &str, options: &Options) -> Result<(), ProcessorError> {
    // A colon would let one application's names look like another's.
    if app.contains(':') || Slot::named(Group::Elections, app).is_err() {
        return Err(ProcessorError::App(app.to_owned()));
    }
    options.settings.checked().map_err(ProcessorError::Settings)?;
    let (budget, most) = (options.stop_budget(), options.stop_budget_max());
    if budget > most { Err(ProcessorError::StopBudget { budget, most }) } else { Ok(()) }
}

pub(super) fn check_job(app: &str, job: &str) -> Result<(), ProcessorError> {
    if job.is_empty() {
        return Err(ProcessorError::Job(NameError::of(job)));
    }
    let slot = Slot::named(Group::Elections, &job_slot(app, job));
    slot.map(drop).map_err(ProcessorError::Job)
}

impl fmt::Display for ProcessorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoJobs => f.write_str(
                "there are no jobs: add one with job(), or wait for the end with \
                 block_without_jobs()",
            ),
            Self::Twice(name) => {
                write!(f, "two jobs are called {name:?}: give each a name of its own")
            }
            Self::App(app) => write!(
                f,
                "{app:?} cannot name an application: use letters, digits, '.', '_' or '-'"
            ),
            Self::Job(bad) => bad.fmt(f),
            Self::Settings(bad) => bad.fmt(f),
            Self::StopBudget { budget, most } => write!(
                f,
                "a stop budget of {budget:?} would stop jobs that are renewed in time: use at \
                 most {most:?}, or a longer TTL"
            ),
            Self::NoRandomBits(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ProcessorError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            // Its text is that of what it holds, so what comes next is what that rests on.
            Self::NoRandomBits(error) => error.source(),
            _ => None,
        }
    }
}
