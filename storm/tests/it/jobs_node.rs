//! `storm jobs-node`: what E30 concludes from its lines must be true of it.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;

use frazil_rig::{Redis, wait_until};
use serde_json::Value;
use tempfile::TempDir;

const PATIENCE: Duration = Duration::from_secs(60);

/// A process that is killed when the test ends.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A node, and what it said.
struct Node {
    running: Running,
    said: PathBuf,
}

impl Node {
    fn start(home: &Path, store: &str, instance: &str) -> Self {
        let (said, out) = (home.join(instance), home.join("out"));
        fs::create_dir_all(&out).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_storm"));
        command.args(["jobs-node", "--app", "demo", "--jobs", "5", "--store", store]);
        command.args(["--instance", instance, "--ttl-ms", "2000", "--lock-delay-ms", "0"]);
        command.args(["--every-ms", "500", "--write"]).arg(out);
        command.stdout(File::create(&said).unwrap());
        Self { running: Running(command.spawn().unwrap()), said }
    }

    /// The lines of a step; the last one may not be whole yet.
    fn said(&self, step: &str) -> Vec<Value> {
        let text = fs::read_to_string(&self.said).unwrap();
        let whole = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        let lines = whole.map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines.filter(|line| line["step"] == step).collect()
    }

    /// Waits until it has said a step of all five jobs.
    fn says(&self, step: &str) -> BTreeMap<String, u64> {
        let tokens = || -> BTreeMap<String, u64> {
            let text = |line: &Value, name: &str| line[name].as_str().unwrap().to_owned();
            let token = |line| (text(line, "job"), text(line, "token").parse().unwrap());
            self.said(step).iter().map(token).collect()
        };
        wait_until(&format!("five jobs to be {step}"), PATIENCE, || tokens().len() == 5).unwrap();
        tokens()
    }

    fn signal(&self, signal: &str) {
        let pid = self.running.0.id().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
    }
}

#[test]
fn a_node_that_is_frozen_or_killed_is_followed_by_another_with_higher_tokens() {
    let (home, redis) = (TempDir::new().unwrap(), Redis::start().unwrap());
    let first = Node::start(home.path(), &redis.url(), "first");
    // Right after all have written, so that it is frozen while it writes nothing.
    let before = first.says("wrote");
    first.signal("-STOP");
    assert_eq!(first.said("up")[0]["process"], first.running.0.id());
    let second = Node::start(home.path(), &redis.url(), "second");
    let after = second.says("wrote");
    assert!(before.iter().all(|(job, token)| after[job] > *token), "{before:?} {after:?}");
    first.signal("-CONT");
    assert_eq!(first.says("stopped"), before, "its own view ends");
    assert_eq!(first.said("cancelled")[0]["why"], "expiring");
    // Whether it still came to write is up to chance.
    for late in first.said("refused") {
        let number = |name: &str| late[name].as_str().unwrap().parse::<u64>().unwrap();
        assert_eq!(late["led"], false, "{late}");
        assert!(number("highest") > number("token"), "{late}");
    }
    drop(first);
    let mut third = Node::start(home.path(), &redis.url(), "third");
    wait_until("jobs to move to a node that joined", PATIENCE, || !third.said("wrote").is_empty())
        .unwrap();
    drop(second);
    third.says("wrote");
    third.signal("-TERM");
    assert_eq!(third.running.0.wait().unwrap().code(), Some(0));
    assert_eq!(third.said("down")[0]["unfinished"], Value::Array(Vec::new()));
    third.says("released");
}

#[test]
fn a_node_says_for_which_token_it_was_refused() {
    let (home, redis) = (TempDir::new().unwrap(), Redis::start().unwrap());
    let (out, highest) = (home.path().join("out"), u64::MAX.to_string());
    fs::create_dir(&out).unwrap();
    fs::write(out.join("job-02.fence"), &highest).unwrap();
    let node = Node::start(home.path(), &redis.url(), "node");
    wait_until("a write to be refused", PATIENCE, || !node.said("refused").is_empty()).unwrap();
    let refused = &node.said("refused")[0];
    assert_eq!((&refused["job"], &refused["led"]), (&"job-02".into(), &true.into()), "{refused}");
    assert_eq!(refused["highest"], highest, "{refused}");
    assert!(node.said("wrote").iter().all(|wrote| wrote["job"] != "job-02"));
}
