//! A clock that can be set without being root.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;

/// The real time of processes that are started with its [`environment`](Self::environment): as far
/// from the machine's as it is set at the moment. Needs a C compiler, as Rust does.
#[derive(Debug)]
pub struct FalseClock {
    directory: TempDir,
}

impl FalseClock {
    /// A clock that is right.
    ///
    /// # Errors
    ///
    /// If the C compiler is missing, or files cannot be written.
    pub fn new() -> io::Result<Self> {
        let clock = Self { directory: tempfile::tempdir()? };
        fs::write(clock.offset(), 0_i64.to_le_bytes())?;
        let source = clock.directory.path().join("false_clock.c");
        fs::write(&source, include_str!("false_clock.c"))?;
        let compiled = Command::new("cc")
            .args(["-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o"])
            .arg(clock.library())
            .arg(&source)
            .output()?;
        if !compiled.status.success() {
            let message = String::from_utf8_lossy(&compiled.stderr).into_owned();
            return Err(io::Error::other(message));
        }
        Ok(clock)
    }

    /// What a process must have in its environment to go by it.
    #[must_use]
    pub fn environment(&self) -> [(&'static str, PathBuf); 2] {
        [("LD_PRELOAD", self.library()), ("FALSE_CLOCK", self.offset())]
    }

    /// Sets it behind the machine's clock.
    ///
    /// # Errors
    ///
    /// If the file cannot be written.
    pub fn set_back(&self, by: Duration) -> io::Result<()> {
        self.set(-nanos(by)?)
    }

    /// Sets it ahead of the machine's clock.
    ///
    /// # Errors
    ///
    /// If the file cannot be written.
    pub fn set_ahead(&self, by: Duration) -> io::Result<()> {
        self.set(nanos(by)?)
    }

    /// Sets it right.
    ///
    /// # Errors
    ///
    /// If the file cannot be written.
    pub fn set_right(&self) -> io::Result<()> {
        self.set(0)
    }

    /// Sets it so many nanoseconds ahead of the machine's clock, or behind it.
    ///
    /// # Errors
    ///
    /// If the file cannot be written.
    pub fn set(&self, nanos: i64) -> io::Result<()> {
        // In place: the file is mapped by others.
        use std::os::unix::fs::FileExt;
        let file = fs::File::options().write(true).open(self.offset())?;
        file.write_all_at(&nanos.to_le_bytes(), 0)
    }

    fn offset(&self) -> PathBuf {
        self.directory.path().join("offset")
    }

    fn library(&self) -> PathBuf {
        self.directory.path().join("false_clock.so")
    }
}

fn nanos(duration: Duration) -> io::Result<i64> {
    i64::try_from(duration.as_nanos()).map_err(io::Error::other)
}
