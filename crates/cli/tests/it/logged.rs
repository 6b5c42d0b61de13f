//! A server whose stderr is kept line by line.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, ExitStatus};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use frazil_rig::wait_until;

/// How long a server may take for anything.
const PATIENCE: Duration = Duration::from_secs(60);

/// Ended by its id when dropped.
pub(crate) struct Logged {
    child: Child,
    lines: Arc<Mutex<Vec<String>>>,
}

impl Logged {
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command.spawn().unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let lines = Arc::<Mutex<Vec<String>>>::default();
        let kept = lines.clone();
        std::thread::spawn(move || {
            for line in stderr.split(b'\n').map_while(Result::ok) {
                kept.lock().unwrap().push(String::from_utf8(line).unwrap());
            }
        });
        Self { child, lines }
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.lines.lock().unwrap().clone()
    }

    pub(crate) fn count(&self, text: &str) -> usize {
        self.lines().iter().filter(|line| line.contains(text)).count()
    }

    /// Waits until a text has been said so many times, and gives the last line with it.
    pub(crate) fn wait_for(&self, text: &str, times: usize) -> String {
        let outcome = wait_until(text, PATIENCE, || self.count(text) >= times);
        outcome.unwrap_or_else(|error| panic!("{error}: {:#?}", self.lines()));
        self.lines().into_iter().rfind(|line| line.contains(text)).unwrap()
    }

    pub(crate) fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args([name, &id]).status().unwrap().success());
    }

    pub(crate) fn stop(&mut self) -> ExitStatus {
        self.signal("-TERM");
        self.child.wait().unwrap()
    }
}

impl Drop for Logged {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
