//! A server process that can be killed and started again in its place.

use std::fs;
use std::io;
use std::process::ExitStatus;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::ports::listens;
use crate::process::{Process, Recipe};
use crate::waiting::wait_for;

/// How much of the log an error shows: enough for a stack trace.
const LOG_TAIL_LINES: usize = 25;

/// The process of one server: what every kind of server has in common, and lends itself to.
///
/// A server starts it by its own means, since only the server knows when it is ready.
#[derive(Debug)]
pub struct Daemon {
    recipe: Recipe,
    running: Mutex<Running>,
}

#[derive(Debug)]
enum Running {
    No,
    Yes(Process),
    Paused(Process),
}

impl Daemon {
    /// A server that does not run yet.
    #[must_use]
    pub fn new(recipe: Recipe) -> Self {
        Self { recipe, running: Mutex::new(Running::No) }
    }

    /// Starts the process if it does not run, and does not wait for it.
    ///
    /// # Errors
    ///
    /// If the process can not be started.
    pub fn launch(&self) -> io::Result<()> {
        let mut running = self.lock();
        if matches!(*running, Running::No) {
            *running = Running::Yes(Process::start(&self.recipe)?);
        }
        Ok(())
    }

    /// Waits until the process listens on its port and `ready` holds.
    ///
    /// # Errors
    ///
    /// If it does not within the limit, or the process ends; the message has the end of its log.
    pub fn until_ready(&self, limit: Duration, mut ready: impl FnMut() -> bool) -> io::Result<()> {
        let name = self.recipe.program.display().to_string();
        wait_for(&format!("{name} to be ready"), limit, || {
            let id = self.running_id()?;
            // An answer counts only if our process gave it, and not another one on that port.
            Ok((listens(id, self.recipe.port) && ready()).then_some(()))
        })
        .map_err(|error| {
            io::Error::new(error.kind(), format!("{name}: {error}\n{}", self.log_tail()))
        })
    }

    /// Kills the process with SIGKILL and reaps it; nothing happens if it does not run.
    pub fn kill(&self) {
        *self.lock() = Running::No;
    }

    /// Stops the process: it still gets connections and bytes, and answers nothing.
    ///
    /// # Errors
    ///
    /// If it does not run.
    pub fn pause(&self) -> io::Result<()> {
        let mut running = self.lock();
        match std::mem::replace(&mut *running, Running::No) {
            Running::No => Err(self.not_running()),
            Running::Yes(mut process) | Running::Paused(mut process) => {
                let result = process.pause();
                *running = Running::Paused(process);
                result
            }
        }
    }

    /// Lets a paused process go on.
    ///
    /// # Errors
    ///
    /// If it does not run.
    pub fn resume(&self) -> io::Result<()> {
        let mut running = self.lock();
        match std::mem::replace(&mut *running, Running::No) {
            Running::No => Err(self.not_running()),
            Running::Yes(mut process) | Running::Paused(mut process) => {
                let result = process.resume();
                *running = Running::Yes(process);
                result
            }
        }
    }

    /// Asks the process to end with SIGTERM, and does not wait for that.
    ///
    /// # Errors
    ///
    /// If it does not run.
    pub fn terminate(&self) -> io::Result<()> {
        match &mut *self.lock() {
            Running::No => Err(self.not_running()),
            Running::Yes(process) | Running::Paused(process) => process.terminate(),
        }
    }

    /// How the process ended, if it did so by itself since it was launched.
    ///
    /// # Errors
    ///
    /// If the system does not tell.
    pub fn ended(&self) -> io::Result<Option<ExitStatus>> {
        match &mut *self.lock() {
            Running::No => Ok(None),
            Running::Yes(process) | Running::Paused(process) => process.ended(),
        }
    }

    /// The process id while it runs or is paused.
    #[must_use]
    pub fn id(&self) -> Option<u32> {
        match &*self.lock() {
            Running::No => None,
            Running::Yes(process) | Running::Paused(process) => Some(process.id()),
        }
    }

    /// Whether it was started and neither killed nor paused since.
    #[must_use]
    pub fn runs(&self) -> bool {
        matches!(*self.lock(), Running::Yes(_))
    }

    /// The last lines of what the process has printed.
    pub(crate) fn log_tail(&self) -> String {
        let log = fs::read(&self.recipe.log).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(LOG_TAIL_LINES)..].join("\n")
    }

    fn running_id(&self) -> io::Result<u32> {
        match &mut *self.lock() {
            Running::No => Err(self.not_running()),
            Running::Yes(process) | Running::Paused(process) => match process.ended()? {
                None => Ok(process.id()),
                Some(status) => Err(io::Error::other(format!("ended with {status}"))),
            },
        }
    }

    fn not_running(&self) -> io::Error {
        io::Error::other(format!("{} does not run", self.recipe.program.display()))
    }

    /// A test that panicked with the lock held leaves a state that is still true.
    fn lock(&self) -> MutexGuard<'_, Running> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
