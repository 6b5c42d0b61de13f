//! A directory with files of IDs, and the command run in it.

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;

use serde_json::Value;
use tempfile::TempDir;

pub(crate) struct Desk(TempDir);

/// What a run came to.
pub(crate) struct AuditReport {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Desk {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::write(self.file(name), content).unwrap();
    }

    pub(crate) fn audit(&self, args: &[impl AsRef<OsStr>]) -> AuditReport {
        self.audit_input(args, "")
    }

    /// Runs with a stdout that nobody reads; its exit code.
    pub(crate) fn audit_for_nobody(&self, args: &[&str]) -> Option<i32> {
        let mut child = Command::new(env!("CARGO_BIN_EXE_frazil"))
            .arg("audit")
            .args(args)
            .current_dir(&self.0)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        child.wait().unwrap().code()
    }

    /// Runs with input on stdin, written beside the reading of the output.
    pub(crate) fn audit_input(&self, args: &[impl AsRef<OsStr>], input: &str) -> AuditReport {
        let mut child = Command::new(env!("CARGO_BIN_EXE_frazil"))
            .arg("audit")
            .args(args)
            .current_dir(&self.0)
            .env_remove("FRAZIL_LAYOUT")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let input = input.to_owned();
        // Who does not read stdin closes it.
        let writer = thread::spawn(move || drop(stdin.write_all(input.as_bytes())));
        let output = child.wait_with_output().unwrap();
        writer.join().unwrap();
        AuditReport {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

pub(crate) fn objects(stdout: &str) -> Vec<Value> {
    stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}
