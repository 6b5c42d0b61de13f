//! The exit codes, and which errors end with which.

use std::io;

use frazil::coord::ErrorKind;
use frazil::coord::{Refusal, Waiting};
use frazil::{InvalidNamespace, NotIssued};
use frazil_doctor::Advised;
use frazil_id::NotReady;
use frazil_server::keys::StoredKeysError;
use frazil_server::{BindError, RunError};

use super::Failure;

/// How a command can end other than well. The numbers are a contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// The answer is "no": a check failed.
    No = 1,
    /// Usage or configuration, a password or a permission included.
    Usage = 2,
    /// A store, the network or the output is unavailable.
    Unavailable = 3,
    /// Refused for safety.
    Refused = 4,
    /// A leadership was lost; another try may succeed.
    LeadershipLost = 75,
    /// What was waited for did not come in time, as timeout(1) has it.
    WaitedInVain = 124,
    /// A command that was to be run cannot be.
    NotRunnable = 126,
    /// A command that was to be run is not there.
    NotFound = 127,
}

/// The signals that ask to end, with what a shell shows for a process that one of them ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signal {
    HangUp = 128 + 1,
    Interrupt = 128 + 2,
    Terminate = 128 + 15,
}

/// Failures of writing data.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::ReaderGone,
            _ => {
                Self::new(Exit::Unavailable, format_args!("the output cannot be written: {error}"))
            }
        }
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        io::Error::from(error).into()
    }
}

impl From<frazil_id::StartError> for Failure {
    fn from(error: frazil_id::StartError) -> Self {
        match error {
            frazil_id::StartError::Clock(why) => why.into(),
            frazil_id::StartError::LifetimeTooShort { .. } => Self::new(Exit::Refused, error),
            _ => Self::usage(error),
        }
    }
}

impl From<NotReady> for Failure {
    fn from(why: NotReady) -> Self {
        Self::new(Exit::Refused, why)
    }
}

impl From<NotIssued> for Failure {
    fn from(why: NotIssued) -> Self {
        Self::new(Exit::Refused, why)
    }
}

impl From<frazil::StartError> for Failure {
    fn from(error: frazil::StartError) -> Self {
        use frazil::StartError as Start;
        match error {
            Start::Options(error) => error.into(),
            Start::Store(error) | Start::Refused(Refusal::Store(error)) => error.into(),
            Start::Refused(refusal) => Self::new(Exit::Refused, refusal),
            Start::NoWorker(
                Waiting::Quarantine { .. } | Waiting::WrongTimes { .. } | Waiting::Clock { .. },
            ) => Self::new(Exit::Refused, error),
            Start::NoWorker(_) | Start::Thread(_) => Self::new(Exit::Unavailable, error),
            _ => Self::usage(error),
        }
    }
}

impl From<InvalidNamespace> for Failure {
    fn from(error: InvalidNamespace) -> Self {
        match error {
            InvalidNamespace::NoRandomness(why) => {
                Self::new(Exit::Unavailable, format_args!("no random bits: {why}"))
            }
            error => Self::usage(error),
        }
    }
}

impl From<frazil::coord::Error> for Failure {
    fn from(error: frazil::coord::Error) -> Self {
        let exit = match error.kind() {
            ErrorKind::InvalidConfig | ErrorKind::Denied => Exit::Usage,
            ErrorKind::Corrupt | ErrorKind::NewerFormat | ErrorKind::Unsafe => Exit::Refused,
            _ => Exit::Unavailable,
        };
        Self::new(exit, Advised(&error))
    }
}

impl From<StoredKeysError> for Failure {
    fn from(error: StoredKeysError) -> Self {
        match error {
            StoredKeysError::Store(error) => error.into(),
            StoredKeysError::NoRandomness(_) => Self::new(Exit::Unavailable, error),
            error => Self::new(Exit::Refused, error),
        }
    }
}

impl From<BindError> for Failure {
    fn from(error: BindError) -> Self {
        match error {
            BindError::Listen { .. } | BindError::Threads(_) => Self::new(Exit::Unavailable, error),
            BindError::Node(error) => error.into(),
            _ => Self::usage(error),
        }
    }
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Start(error) => error.into(),
            _ => Self::new(Exit::Refused, error),
        }
    }
}

/// Why nothing was measured, or what is not well.
impl From<frazil_load::Error> for Failure {
    fn from(error: frazil_load::Error) -> Self {
        use frazil_load::Error;
        let exit = match error {
            Error::Usage(_) => Exit::Usage,
            Error::Refused(_) => Exit::Refused,
            Error::Wrong(_) => Exit::No,
            Error::Interrupted => return Self::Interrupted(Signal::Interrupt),
            _ => Exit::Unavailable,
        };
        Self::new(exit, error)
    }
}
