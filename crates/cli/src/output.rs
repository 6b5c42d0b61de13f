//! The output: data to stdout, everything else to stderr, and the exit code.

mod printable_json;

use std::fmt::Display;
use std::io::{self, BufWriter, Stdout, Write};
use std::process::ExitCode;

use serde::Serialize;

/// Bytes written to stdout at once: a pipe's capacity on Linux.
const BUFFER_BYTES: usize = 65_536;

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

/// Why a command ended early, and what to do next.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Printed as an error; the exit code says of which kind.
    Message(Exit, String),
    /// Already printed.
    Reported(Exit),
    /// Whoever read stdout has stopped reading; that is not an error.
    ReaderGone,
    /// A signal asked to end; everything was put in order first.
    Interrupted(Signal),
    /// A command that was run ended with this code, and so do we.
    Ended(u8),
}

/// The signals that ask to end, with what a shell shows for a process that one of them ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signal {
    HangUp = 128 + 1,
    Interrupt = 128 + 2,
    Terminate = 128 + 15,
}

impl Failure {
    pub(crate) fn new(exit: Exit, why: impl Display) -> Self {
        Self::Message(exit, why.to_string())
    }

    pub(crate) fn usage(why: impl Display) -> Self {
        Self::new(Exit::Usage, why)
    }
}

/// What a command found, after it printed that: a reader that is gone takes nothing away from it.
pub(crate) fn after(
    printed: Result<(), Failure>,
    verdict: Result<(), Failure>,
) -> Result<(), Failure> {
    match printed {
        Ok(()) | Err(Failure::ReaderGone) => verdict,
        Err(failure) => Err(failure),
    }
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

/// Ends the process as the outcome asks for.
pub(crate) fn finish(outcome: Result<(), Failure>) -> ExitCode {
    match outcome {
        Ok(()) | Err(Failure::ReaderGone) => ExitCode::SUCCESS,
        Err(Failure::Interrupted(signal)) => ExitCode::from(signal as u8),
        Err(Failure::Ended(code)) => ExitCode::from(code),
        Err(Failure::Reported(exit)) => ExitCode::from(exit as u8),
        Err(Failure::Message(exit, message)) => {
            complain(&message);
            ExitCode::from(exit as u8)
        }
    }
}

/// Tells the user of an error, on stderr: as a JSON object where a server's log is one.
pub(crate) fn complain(message: &str) {
    say(crate::log::error_line(message));
}

/// Tells the user something, on stderr.
pub(crate) fn say(message: impl Display) {
    // Nobody is left to tell when stderr is gone.
    let _ = writeln!(io::stderr(), "{message}");
}

/// Buffered stdout. Call [`flush`](Data::flush) at the end: a drop would swallow the error.
#[derive(Debug)]
pub(crate) struct Data(BufWriter<Stdout>);

impl Data {
    pub(crate) fn new() -> Self {
        Self(BufWriter::with_capacity(BUFFER_BYTES, io::stdout()))
    }

    pub(crate) fn line(&mut self, text: &[u8]) -> Result<(), Failure> {
        self.0.write_all(text)?;
        Ok(self.0.write_all(b"\n")?)
    }

    pub(crate) fn text(&mut self, text: impl Display) -> Result<(), Failure> {
        Ok(writeln!(self.0, "{text}")?)
    }

    pub(crate) fn json(&mut self, object: &impl Serialize) -> Result<(), Failure> {
        printable_json::write(&mut self.0, object)?;
        Ok(self.0.write_all(b"\n")?)
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        Ok(self.0.write_all(bytes)?)
    }

    pub(crate) fn flush(&mut self) -> Result<(), Failure> {
        Ok(self.0.flush()?)
    }
}
