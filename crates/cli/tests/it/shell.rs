//! A user's shell with a home of its own.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// Runs the command with a state directory of its own.
#[derive(Debug)]
pub(crate) struct Shell {
    home: tempfile::TempDir,
}

impl Shell {
    pub(crate) fn new() -> Self {
        Self { home: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn home(&self) -> &Path {
        self.home.path()
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_frazil"));
        let place = ["STORE", "NAMESPACE", "STORE_PASSWORD", "CONTEXT"];
        let variables = ["LAYOUT", "WORKER", "WORKERS", "PATIENCE"].into_iter().chain(place);
        for variable in variables {
            command.env_remove(format!("FRAZIL_{variable}"));
        }
        command.args(args).env("FRAZIL_STATE_DIR", self.home.path());
        // A developer's own contexts have no part in this.
        command.env("XDG_CONFIG_HOME", self.home.path().join("config"));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub(crate) fn output(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    /// The data of a run that must succeed.
    pub(crate) fn data(&self, args: &[&str]) -> String {
        let output = self.output(args);
        assert!(output.status.success(), "{args:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    pub(crate) fn json_lines(&self, args: &[&str]) -> Vec<Value> {
        self.data(args).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// A run that must fail with this code, no data, and a message that has these texts.
    pub(crate) fn fails(&self, args: &[&str], code: i32, texts: &[&str]) {
        let output = self.output(args);
        let stderr = str::from_utf8(&output.stderr).unwrap();
        assert_eq!(
            (output.status.code(), output.stdout.as_slice()),
            (Some(code), &[][..]),
            "{args:?}: {stderr}"
        );
        for text in texts {
            assert!(stderr.contains(text), "{args:?}: {text:?} in {stderr}");
        }
    }
}
