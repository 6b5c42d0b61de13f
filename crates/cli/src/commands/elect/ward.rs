//! The command that runs while we lead, seen from `frazil elect`.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use tokio::signal::unix::{self, SignalKind};

use super::deadline::Deadline;
use super::signals::catch;
use crate::output::{Exit, Failure};

/// This very program, even if another was installed in its place since.
pub(super) const OURSELVES: &str = "/proc/self/exe";

/// A command with its guard, both in one process group. Dropping it kills the group.
#[derive(Debug)]
pub(super) struct Ward {
    guard: Child,
    children: unix::Signal,
    is_reaped: bool,
}

impl Ward {
    /// Starts a command with these variables, until a deadline. On the thread that lives as long as
    /// the process.
    pub(super) fn start(
        command: &[OsString],
        variables: &[(&str, String)],
        deadline: &Deadline,
    ) -> Result<Self, Failure> {
        // Before there is a child: its end is then not missed.
        let children = catch(SignalKind::child())?;
        let mut guard = Command::new(OURSELVES);
        guard.arg0("frazil").arg("elect-guard");
        guard.arg("--parent").arg(std::process::id().to_string());
        guard.arg("--deadline").arg(deadline.descriptor().to_string());
        guard.arg("--").args(command);
        guard.envs(variables.iter().map(|(name, value)| (name, value)));
        let guard = guard.process_group(0).spawn().map_err(|error| {
            Failure::new(Exit::Unavailable, format_args!("no process can be started: {error}"))
        })?;
        Ok(Self { guard, children, is_reaped: false })
    }

    /// Waits until the command has ended; its guard ends with it.
    pub(super) async fn ended(&mut self) -> io::Result<()> {
        // Its number stays taken until it is reaped, which is when the group was killed.
        let looks = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        while waitid(WaitId::Pid(Pid::from_child(&self.guard)), looks)?.is_none() {
            self.children.recv().await;
        }
        Ok(())
    }

    /// Sends a signal to the command and all of its group.
    pub(super) fn signal(&self, signal: Signal) {
        // A group that is gone needs no signal.
        let _ = kill_process_group(Pid::from_child(&self.guard), signal);
    }

    /// Kills what is left of the group; gives the code that the command ended with.
    pub(super) fn finish(mut self) -> io::Result<u8> {
        self.signal(Signal::KILL);
        let status = self.guard.wait()?;
        self.is_reaped = true;
        Ok(code_of(status))
    }
}

impl Drop for Ward {
    fn drop(&mut self) {
        if !self.is_reaped {
            self.signal(Signal::KILL);
            // Killed, it ends soon; nothing can be done about a failure here.
            let _ = self.guard.wait();
        }
    }
}

/// What a shell would say: the code, or 128 and the signal.
pub(super) fn code_of(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)
}
