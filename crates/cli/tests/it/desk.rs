//! A directory with a configuration file, and the command at hand.
#![allow(dead_code, reason = "each test program uses some of it")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

pub(crate) struct Desk {
    home: tempfile::TempDir,
    environment: Vec<(String, String)>,
}

impl Desk {
    pub(crate) fn new() -> Self {
        Self { home: tempfile::tempdir().unwrap(), environment: Vec::new() }
    }

    /// With a file of this text.
    pub(crate) fn with(text: &str) -> Self {
        let desk = Self::new();
        desk.write(text);
        desk
    }

    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn write(&self, text: &str) {
        std::fs::write(self.file(), text).unwrap();
    }

    pub(crate) fn home(&self) -> &Path {
        self.home.path()
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.home().join("frazil.toml")
    }

    /// Runs with the file, if there is one.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_frazil"));
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("FRAZIL_")) {
            command.env_remove(name);
        }
        command.env("FRAZIL_STATE_DIR", self.home());
        command.env("XDG_CONFIG_HOME", self.home().join("config"));
        if self.file().exists() {
            command.env("FRAZIL_CONFIG", self.file());
        }
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.args(args);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub(crate) fn output(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    /// The exit code and the lines on stderr of `config check`.
    pub(crate) fn check(&self, args: &[&str]) -> (Option<i32>, Vec<String>) {
        let output = self.output(&[&["config", "check"][..], args].concat());
        let said = String::from_utf8(output.stderr).unwrap();
        (output.status.code(), said.lines().map(str::to_owned).collect())
    }

    pub(crate) fn data(&self, args: &[&str]) -> String {
        let output = self.output(args);
        assert!(output.status.success(), "{args:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Value and origin of a setting.
    pub(crate) fn setting(&self, key: &str, flags: &[&str]) -> (Value, String) {
        let shown = self.data(&[&["config", "show", "--json"][..], flags].concat());
        let objects = shown.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let object = objects.into_iter().find(|object| object["key"] == key).unwrap();
        (object["value"].clone(), object["origin"].as_str().unwrap().to_owned())
    }
}
