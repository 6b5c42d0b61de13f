//! The processes that are measured, and what the system knows of them.

use std::fs;
use std::io::{self, BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A child that is stopped by its id when dropped.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    /// The addresses that it printed.
    pub(crate) addresses: Vec<String>,
}

impl Process {
    /// Starts this program in another role and reads the line of addresses that it prints.
    pub(crate) fn start(role: &[&str]) -> io::Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(role)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut line = String::new();
        if let Some(stdout) = child.stdout.take() {
            BufReader::new(stdout).read_line(&mut line)?;
        }
        let addresses: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        if addresses.is_empty() {
            return Err(io::Error::other("the measured process did not start"));
        }
        Ok(Self { child, addresses })
    }

    pub(crate) fn usage(&self) -> io::Result<Usage> {
        Usage::of(self.child.id())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a process used so far.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Usage {
    pub(crate) cpu: Duration,
    pub(crate) resident_bytes: u64,
}

impl Usage {
    pub(crate) fn of(id: u32) -> io::Result<Self> {
        let stat = fs::read_to_string(format!("/proc/{id}/stat"))?;
        let rest = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
        // Counted as proc(5) does: the first here is the third.
        let field = |number: usize| -> u64 {
            rest.split_ascii_whitespace().nth(number - 3).and_then(|f| f.parse().ok()).unwrap_or(0)
        };
        let ticks = field(14) + field(15);
        let per_second = rustix::param::clock_ticks_per_second();
        let page = rustix::param::page_size() as u64;
        Ok(Self {
            cpu: Duration::from_millis(ticks * 1000 / per_second),
            resident_bytes: field(24) * page,
        })
    }
}
