//! A process of its own that holds a slot: the test executable, started once more.

use std::env;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use frazil_coord::Slot;
use frazil_coord::internal::time::unix_ms;
use frazil_rig::wait_until;

use super::desk;

/// Where the child finds the store; without it the child's part is not played.
const DIRECTORY: &str = "FRAZIL_HOLDER_DIRECTORY";
const HELD: &str = "the child holds up to ";

pub(crate) fn slot() -> Slot {
    Slot::worker(7)
}

/// A child that holds the slot, killed when dropped.
pub(crate) struct Holder {
    child: Child,
    /// What was acknowledged to it.
    pub(crate) horizon: u64,
}

impl Holder {
    pub(crate) fn start(directory: &Path) -> Self {
        let mut child = Command::new(env::current_exe().unwrap())
            .args(["--exact", "file_faults::the_part_of_the_child", "--nocapture"])
            .env(DIRECTORY, directory)
            // Its end tells the child that the parent is gone.
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let said = lines.map_while(Result::ok).find_map(|line| {
            line.split_once(HELD).map(|(_, horizon)| horizon.trim().parse().unwrap())
        });
        let horizon = said.expect("the child says what it holds");
        Self { child, horizon }
    }

    pub(crate) fn kill(&mut self) {
        // SIGKILL. The process is gone when its end was collected.
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub(crate) fn freeze(&self) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-STOP", &id]).status().unwrap().success());
        wait_until("the child to stop", Duration::from_secs(10), || {
            let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap();
            stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T'))
        })
        .unwrap();
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        // It may be gone already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// What the child does: holds the slot until its parent is gone.
#[expect(clippy::print_stdout, reason = "so its parent hears of it")]
pub(crate) async fn play() {
    let Some(directory) = env::var_os(DIRECTORY).map(PathBuf::from) else { return };
    let store = desk::open(&directory).await;
    let tenure = desk::take(&store, &slot(), unix_ms()).await;
    println!("{HELD}{}", tenure.horizon);
    let mut nothing = Vec::new();
    drop(std::io::stdin().read_to_end(&mut nothing));
}
