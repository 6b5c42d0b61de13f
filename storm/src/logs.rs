//! What processes have printed.

use std::fs;
use std::io;
use std::path::Path;

use crate::verdict::Verdict;

/// How every Rust process begins to tell of a panic.
const PANICKED: &str = "panicked at";

/// Removes what an earlier run left there: a log is appended to.
pub(crate) fn clear(directory: &Path) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if is_log(&path) {
            fs::remove_file(path)?;
        }
    }
    Ok(())
}

/// No process that logs there has panicked: nodes, candidates, and what they run.
pub(crate) fn check_panics(directory: &Path, verdict: &mut Verdict) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if !is_log(&path) {
            continue;
        }
        let log = fs::read(&path)?;
        let log = String::from_utf8_lossy(&log);
        let count = log.lines().filter(|line| line.contains(PANICKED)).count();
        let first = log.lines().find(|line| line.contains(PANICKED)).unwrap_or_default();
        verdict.hold("no panic", count == 0, || {
            format!("{count} in {}, the first: {first}", path.display())
        });
    }
    Ok(())
}

fn is_log(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "log")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_in_any_log_is_found_and_that_of_an_earlier_run_is_not() {
        let directory = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(directory.path().join(name), text).unwrap();
        let findings = || {
            let mut verdict = Verdict::default();
            check_panics(directory.path(), &mut verdict).unwrap();
            verdict.finding_count
        };
        write("node-0.log", "2026-11-16T04:20:18Z INFO the node is ready\n");
        write("report.txt", "it panicked at noon, says the report\n");
        assert_eq!(findings(), 0);
        write("candidate-3.log", "thread 'main' (7) panicked at src/main.rs:1:2:\nwhy\n");
        assert_eq!(findings(), 1);
        clear(directory.path()).unwrap();
        assert_eq!(findings(), 0);
        assert!(directory.path().join("report.txt").exists());
    }
}
