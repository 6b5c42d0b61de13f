//! A server process that can be killed and started again in its place.

use std::fs;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::ports::listens;
use crate::process::{Process, Recipe};
use crate::waiting::wait_for;

/// How much of the log an error shows: enough for a stack trace.
const LOG_TAIL_LINES: usize = 25;

/// One server: how to start it, and its process while it runs.
#[derive(Debug)]
pub(crate) struct Daemon {
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
    pub(crate) fn new(recipe: Recipe) -> Self {
        Self { recipe, running: Mutex::new(Running::No) }
    }

    /// Starts the process if it does not run; does not wait until it is ready.
    pub(crate) fn launch(&self) -> io::Result<()> {
        let mut running = self.lock();
        if matches!(*running, Running::No) {
            *running = Running::Yes(Process::start(&self.recipe)?);
        }
        Ok(())
    }

    /// Waits until `ready` holds while the process runs.
    pub(crate) fn wait_ready(
        &self,
        limit: Duration,
        mut ready: impl FnMut() -> bool,
    ) -> io::Result<()> {
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

    /// Ends the process with SIGKILL and reaps it; nothing happens if it does not run.
    pub(crate) fn kill(&self) {
        *self.lock() = Running::No;
    }

    /// Stops the process with SIGSTOP.
    pub(crate) fn pause(&self) -> io::Result<()> {
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

    /// Continues the process with SIGCONT.
    pub(crate) fn resume(&self) -> io::Result<()> {
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

    /// The id of the process, if it runs or is paused.
    pub(crate) fn id(&self) -> Option<u32> {
        match &*self.lock() {
            Running::No => None,
            Running::Yes(process) | Running::Paused(process) => Some(process.id()),
        }
    }

    /// Whether the process was started and neither killed nor paused since.
    pub(crate) fn runs(&self) -> bool {
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
