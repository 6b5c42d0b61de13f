//! The output: data to stdout, everything else to stderr, and the exit code.

mod exit;
mod printable_json;

use std::fmt::Display;
use std::io::{self, BufWriter, Stdout, Write};
use std::process::ExitCode;

use serde::Serialize;

pub(crate) use self::exit::{Exit, Signal};

/// Bytes written to stdout at once: a pipe's capacity on Linux.
const BUFFER_BYTES: usize = 65_536;

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

impl Failure {
    /// An error is printed with all that it rests on.
    pub(crate) fn new(exit: Exit, why: impl Display) -> Self {
        Self::Message(exit, format!("{why:#}"))
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
