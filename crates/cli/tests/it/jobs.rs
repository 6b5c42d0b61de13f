//! `frazil jobs`: the demonstration on every store, measured, drawn and listed while it runs.

use std::collections::BTreeSet;
use std::process::{Child, Command};
use std::time::Duration;

use crate::shell::Shell;
use frazil_rig::{Etcd, Redis, ZooKeeper, wait_until};
use serde_json::Value;

const PATIENCE: Duration = Duration::from_secs(60);

/// Nothing is lost, nothing runs twice, and nothing waits for a TTL.
fn moves_through_a_rolling_restart(store: &[&str]) {
    let shell = Shell::new();
    let line = ["jobs", "demo", "--headless", "--nodes", "3", "--jobs", "7"];
    let phases = shell.json_lines(&[&line[..], store].concat());
    let names: Vec<_> = phases.iter().map(|phase| phase["phase"].as_str().unwrap()).collect();
    assert_eq!(names, ["start", "restart node-1", "restart node-2", "restart node-3", "all"]);
    for phase in &phases[1..4] {
        assert_eq!(phase["settled"], true, "{phase}");
        assert!(phase["moves"].as_u64().unwrap() >= 2, "{phase}");
    }
    let all = &phases[4];
    assert_eq!((&all["running"], &all["overlaps"]), (&7.into(), &0.into()), "{all}");
    let loads: BTreeSet<_> =
        all["balance"].as_object().unwrap().values().map(|load| load.as_u64().unwrap()).collect();
    assert_eq!(loads, BTreeSet::from([2, 3]), "{all}");
    let gaps = &all["gap_ms"];
    let gap = |name: &str| gaps[name].as_f64().unwrap();
    assert!(gap("p50") <= gap("p90") && gap("p90") <= gap("p99") && gap("p99") <= gap("max"));
    assert!(gap("max") < 5000.0, "a hand-over waited for the TTL of 10 s: {all}");
}

#[test]
fn jobs_move_through_a_rolling_restart_on_files() {
    moves_through_a_rolling_restart(&[]);
}

#[test]
fn jobs_move_through_a_rolling_restart_on_redis() {
    moves_through_a_rolling_restart(&["--store", &Redis::start().unwrap().url()]);
}

#[test]
fn jobs_move_through_a_rolling_restart_on_etcd() {
    moves_through_a_rolling_restart(&["--store", &Etcd::start().unwrap().url()]);
}

#[test]
fn jobs_move_through_a_rolling_restart_on_zookeeper() {
    moves_through_a_rolling_restart(&["--store", &ZooKeeper::start().unwrap().url()]);
}

/// A process that is killed when the test ends.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn jobs_are_listed_while_they_run_and_free_after_they_were_given_back() {
    let shell = Shell::new();
    let redis = Redis::start().unwrap();
    let url = redis.url();
    let at = ["--store", url.as_str()];
    let ls = |more: &[&'static str]| [&["jobs", "ls"][..], &at, more].concat();
    assert!(shell.json_lines(&ls(&["--json"])).is_empty());
    let line = ["jobs", "demo", "--headless", "--jobs", "5", "--app", "billing"];
    let line = [&line[..], &at, &["--duration", "1h"]].concat();
    let mut demo = Running(shell.command(&line).spawn().unwrap());
    let mut jobs = Vec::new();
    wait_until("five jobs to run", PATIENCE, || {
        jobs = shell.json_lines(&ls(&["--app", "billing", "--json"]));
        jobs.len() == 5 && jobs.iter().all(|job| job["state"] == "running")
    })
    .unwrap();
    let tokens: BTreeSet<&str> = jobs.iter().map(|job| job["token"].as_str().unwrap()).collect();
    assert!(!tokens.contains(""));
    for (index, job) in jobs.iter().enumerate() {
        assert_eq!(job["job"], format!("job-0{}", index + 1), "{job}");
        assert!(job["instance"].as_str().unwrap().starts_with("node-"), "{job}");
        assert!((0.0..=10.0).contains(&job["seconds_left"].as_f64().unwrap()), "{job}");
    }
    let table = shell.data(&ls(&[]));
    assert!(table.contains("SECONDS LEFT") && table.contains("job-05"), "{table}");
    assert!(shell.json_lines(&ls(&["--app", "other", "--json"])).is_empty());
    let pid = demo.0.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    assert_eq!(demo.0.wait().unwrap().code(), Some(143));
    let left = shell.json_lines(&ls(&["--json"]));
    assert!(
        left.iter().all(|job| job["state"] == "free" && job["instance"] == Value::Null),
        "{left:?}"
    );
}

#[test]
fn it_is_drawn_on_a_terminal_until_somebody_ends_it() {
    let shell = Shell::new();
    // A terminal of Python's: it types q once every job has a leader, and prints what was drawn.
    let script = "import os, pty, struct, fcntl, termios, sys, select\n\
         pid, fd = pty.fork()\n\
         if pid == 0: os.execv(sys.argv[1], sys.argv[1:])\n\
         fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack('HHHH', 24, 100, 0, 0))\n\
         seen, typed = b'', False\n\
         while True:\n\
         \x20   try: part = os.read(fd, 65536)\n\
         \x20   except OSError: break\n\
         \x20   if not part: break\n\
         \x20   seen += part\n\
         \x20   if not typed and b'is up' in seen and b'node-2' in seen: typed = os.write(fd, b'q') == 1\n\
         sys.stdout.buffer.write(seen)\n\
         sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))";
    let mut python = Command::new("python3");
    python.args(["-c", script, env!("CARGO_BIN_EXE_frazil"), "jobs", "demo", "--jobs", "4"]);
    python.env_remove("FRAZIL_STORE").env("TERM", "xterm").env("FRAZIL_STATE_DIR", shell.home());
    let output = python.output().unwrap();
    let drawn = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{output:?}");
    for text in ["frazil", "node-1", "news", "restart the nodes"] {
        assert!(drawn.contains(text), "{text}: {drawn}");
    }
    assert!(drawn.contains("\x1b[?1049l"), "the screen is given back");
    shell.fails(&["jobs", "demo"], 2, &["no terminal", "--headless"]);
}

#[test]
fn what_cannot_be_shown_is_refused() {
    let shell = Shell::new();
    shell.fails(&["jobs", "demo", "--nodes", "0"], 2, &["1..=9"]);
    shell.fails(&["jobs", "demo", "--jobs", "201"], 2, &["1..=200"]);
    shell.fails(&["jobs", "demo", "--headless", "--app", "a/b"], 2, &["a/b"]);
    shell.fails(&["jobs", "demo", "--headless", "--store", "memory:"], 2, &["not shared"]);
}
