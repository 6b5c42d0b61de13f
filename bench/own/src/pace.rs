//! How long the user wants to wait.

use std::env;
use std::io::{self, Write};
use std::process::ExitCode;

/// A full measurement, or one that only shows that everything works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// Long enough for numbers to rely on.
    Full,
    /// A few seconds for everything.
    Quick,
}

impl Pace {
    /// The pace that the command line asks for.
    ///
    /// # Errors
    /// The exit code, after the usage was printed: the command line asks for something else.
    pub fn from_command_line(program: &str) -> Result<Self, ExitCode> {
        let arguments: Vec<_> = env::args_os().skip(1).collect();
        match arguments.as_slice() {
            [] => Ok(Self::Full),
            [only] if only == "--quick" => Ok(Self::Quick),
            _ => {
                // If nobody reads the usage, the exit code still tells.
                let _ = writeln!(io::stderr(), "usage: {program} [--quick]");
                Err(ExitCode::from(2))
            }
        }
    }

    /// One of two values.
    #[must_use]
    pub fn pick<T>(self, full: T, quick: T) -> T {
        match self {
            Self::Full => full,
            Self::Quick => quick,
        }
    }
}
