//! Where it was measured, and what.

use std::fs;
use std::process::Command;
use std::thread;

/// One line that names the processor, its cores and how busy they are before we begin, and the
/// commit.
#[must_use]
pub fn machine() -> String {
    let or_unknown = |text: Option<String>| text.unwrap_or_else(|| "unknown".into());
    let (processor, load, commit) =
        (or_unknown(processor()), or_unknown(load()), or_unknown(commit()));
    format!("machine: {processor}, {} cores, load {load}; commit: {commit}", cores())
}

/// The cores that this process may use.
#[must_use]
pub fn cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// One thread, and all cores where there are more.
#[must_use]
pub fn thread_counts() -> Vec<usize> {
    let mut counts = vec![1, cores()];
    counts.dedup();
    counts
}

fn processor() -> Option<String> {
    let text = fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    let (_, name) = line.split_once(':')?;
    Some(name.trim().into())
}

/// The average number of threads that wanted a core in the last minute.
fn load() -> Option<String> {
    let text = fs::read_to_string("/proc/loadavg").ok()?;
    text.split(' ').next().map(String::from)
}

/// The commit of the source, with a mark if files have changed since: numbers of such a tree are
/// not numbers of the commit.
fn commit() -> Option<String> {
    let output = Command::new("git")
        .args(["--no-optional-locks", "-C", env!("CARGO_MANIFEST_DIR")])
        .args(["describe", "--always", "--dirty=+changes", "--exclude=*"])
        .output()
        .ok()?;
    let name = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| name.trim().into())
}
