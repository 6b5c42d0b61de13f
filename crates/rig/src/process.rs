//! A child process, known by the process id under which it was started.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};

use crate::{nursery, program};

/// A running child. It is killed and reaped on drop, even if it is stopped.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
}

/// What to run, and where its output goes.
#[derive(Debug, Clone)]
pub struct Recipe {
    /// The program's file.
    pub program: PathBuf,
    /// What it is told.
    pub arguments: Vec<OsString>,
    /// What its environment has besides this process's own.
    pub environment: Vec<(OsString, OsString)>,
    /// Standard output and standard error are appended to it.
    pub log: PathBuf,
    /// The port on which it will listen.
    pub port: u16,
}

impl Process {
    /// Starts the program. It also ends when this test process ends in a way that drops nothing.
    pub(crate) fn start(recipe: &Recipe) -> io::Result<Self> {
        // setpriv replaces itself by the program, so that the child's id is the program's.
        let mut command = Command::new(program::find("setpriv")?);
        command.args(["--pdeathsig", "KILL", "--"]).arg(&recipe.program).args(&recipe.arguments);
        command.envs(recipe.environment.iter().map(|(name, value)| (name, value)));
        let log = append(&recipe.log)?;
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        Ok(Self { child: nursery::spawn(command)? })
    }

    /// The process id.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Stops the process where it is; the kernel goes on accepting connections for it.
    ///
    /// Returns once all its threads have stopped: the signal alone lets some run on for a while.
    pub(crate) fn pause(&mut self) -> io::Result<()> {
        self.signal(Signal::STOP)?;
        // Also for its end, or a process that ends now would be waited for in vain; without
        // reaping it, for that is the child's part.
        let events = WaitIdOptions::STOPPED | WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        waitid(WaitId::Pid(Pid::from_child(&self.child)), events)?;
        Ok(())
    }

    /// Lets a paused process go on.
    pub(crate) fn resume(&mut self) -> io::Result<()> {
        self.signal(Signal::CONT)
    }

    /// Asks the process to end.
    pub(crate) fn terminate(&mut self) -> io::Result<()> {
        self.signal(Signal::TERM)
    }

    /// How the process ended, if it has.
    pub(crate) fn ended(&mut self) -> io::Result<Option<ExitStatus>> {
        self.child.try_wait()
    }

    fn signal(&mut self, signal: Signal) -> io::Result<()> {
        if let Some(status) = self.ended()? {
            return Err(io::Error::other(format!("the process ended with {status}")));
        }
        // The id is the child's: only this value reaps it, and it has not yet.
        Ok(kill_process(Pid::from_child(&self.child), signal)?)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Nothing can be done about a failure here. A child that has ended and was reaped is not
        // signalled by `kill`; SIGKILL also ends a stopped process.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn append(log: &Path) -> io::Result<File> {
    File::options().create(true).append(true).open(log)
}
