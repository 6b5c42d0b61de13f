//! A `frazil elect` process, and the processes below it.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use frazil_rig::wait_until;

/// Longer than anything here takes on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A command that says under which token and in which process it runs, and then goes on.
pub(crate) const WORK: &str = "echo leader $FRAZIL_FENCE $$; exec sleep 1000";

/// Runs until it is dropped, which kills it; its guard then kills the command.
#[derive(Debug)]
pub(crate) struct Candidate {
    child: Child,
    printed: Receiver<String>,
    said: Receiver<String>,
}

/// What the command of a leader printed first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lead {
    pub(crate) token: u64,
    /// Of the command.
    pub(crate) pid: u32,
}

impl Candidate {
    pub(crate) fn start(mut command: Command) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let printed = lines(child.stdout.take().unwrap());
        let said = lines(child.stderr.take().unwrap());
        Self { child, printed, said }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The next line on stdout.
    pub(crate) fn line(&self) -> String {
        let line = self.printed.recv_timeout(PATIENCE);
        line.unwrap_or_else(|_| panic!("nothing printed; said {:?}", self.said.try_iter().last()))
    }

    /// The next line on stdout, if there is one already.
    pub(crate) fn line_now(&self) -> Option<String> {
        self.printed.try_recv().ok()
    }

    /// Waits until its command says that it leads.
    pub(crate) fn lead(&self) -> Lead {
        lead(&self.line())
    }

    /// Waits for a line on stderr that has a text.
    pub(crate) fn says(&self, text: &str) -> String {
        loop {
            let line = self.said.recv_timeout(PATIENCE);
            let line = line.unwrap_or_else(|_| panic!("never said {text:?}"));
            if line.contains(text) {
                return line;
            }
        }
    }

    /// The lines on stderr that nobody has waited for.
    pub(crate) fn all_said(&self) -> Vec<String> {
        self.said.try_iter().collect()
    }

    pub(crate) fn signal(&self, name: &str) {
        signal(name, &self.pid().to_string());
    }

    /// Waits until it has ended; gives its code.
    pub(crate) fn code(&mut self) -> Option<i32> {
        let mut status = None;
        wait_until("frazil elect to end", PATIENCE, || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        })
        .unwrap();
        status.unwrap().code()
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }
}

impl Drop for Candidate {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn lead(line: &str) -> Lead {
    let words: Vec<_> = line.split(' ').collect();
    let ["leader", token, pid] = words[..] else { panic!("{line}") };
    Lead { token: token.parse().unwrap(), pid: pid.parse().unwrap() }
}

/// Which of them leads, and how.
pub(crate) fn leader_of(candidates: &[Candidate]) -> (usize, Lead) {
    let mut found = None;
    wait_until("a leader", PATIENCE, || {
        let at = |(index, candidate): (usize, &Candidate)| {
            candidate.line_now().map(|line| (index, lead(&line)))
        };
        found = candidates.iter().enumerate().find_map(at);
        found.is_some()
    })
    .unwrap();
    found.unwrap()
}

/// Sends a signal to a process, or with a minus to a group.
pub(crate) fn signal(name: &str, pid: &str) {
    assert!(Command::new("kill").args([name, "--", pid]).status().unwrap().success());
}

/// Whether a process is gone; one that nobody has reaped does nothing any more.
pub(crate) fn is_dead(pid: u32) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { return true };
    matches!(stat.rsplit(") ").next().and_then(|rest| rest.chars().next()), Some('Z' | 'X'))
}

pub(crate) fn wait_until_dead(pid: u32) {
    wait_until("the command to be dead", PATIENCE, || is_dead(pid)).unwrap();
}

/// The parent of a process.
pub(crate) fn parent_of(pid: u32) -> u32 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let rest = stat.rsplit(") ").next().unwrap();
    rest.split(' ').nth(1).unwrap().parse().unwrap()
}

fn lines(stream: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stream).lines().map_while(Result::ok) {
            // After the test nobody listens.
            let _ = sender.send(line);
        }
    });
    receiver
}
