//! Leaders that are stopped for longer than they lead.

use std::path::Path;
use std::process::Command;

use frazil::election::fence::{FencedFile, FencedTable, WriteOutcome};
use frazil_coord::Token;
use frazil_rig::{Etcd, Redis, ZooKeeper, wait_until};

use super::TTL;
use super::candidate::{Candidate, PATIENCE, is_dead, parent_of, signal, wait_until_dead};
use crate::shell::Shell;
use frazil_coord::internal::time::boot_time;

const WRITER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/elect/writer.py");

/// Only `frazil elect` is stopped: its command is dead before the next leader starts, and when it goes
/// on it ends with 75.
fn elect_alone_is_stopped(url: &str) {
    let shell = Shell::new();
    let mut first = shell.candidate(url);
    let old = first.lead();
    first.signal("-STOP");
    let second = shell.candidate(url);
    let new = second.lead();
    assert!(is_dead(old.pid), "the command of a stopped leader outlived its leadership");
    assert!(new.token > old.token);
    first.signal("-CONT");
    first.says("is lost");
    assert_eq!(first.code(), Some(75));
    assert!(!is_dead(new.pid));
    let directory = tempfile::tempdir().unwrap();
    let register = FencedFile::new(directory.path().join("register"));
    assert_eq!(register.write(Token(new.token), b"new").unwrap(), WriteOutcome::Accepted);
    let late = register.write(Token(old.token), b"old").unwrap();
    assert_eq!(late, WriteOutcome::Refused { highest: Token(new.token) });
}

/// A command that writes under its token to a database, in a language that knows nothing of us.
fn writer(shell: &Shell, url: &str, base: &Path, update: &str) -> Candidate {
    let line = ["elect", "demo", "--store", url, "--ttl", "3s", "--", "python3", WRITER];
    let mut command = shell.command(&[&line[..], &[base.to_str().unwrap(), update]].concat());
    command.env_remove("FRAZIL_FENCE");
    Candidate::start(command)
}

/// All of them are stopped. The command wakes up first and writes: too late, it is refused. Then
/// `frazil elect` wakes up, kills it and ends with 75.
fn everything_is_stopped(url: &str) {
    let shell = Shell::new();
    let directory = tempfile::tempdir().unwrap();
    let base = directory.path().join("base");
    let create = "CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT, fence BIGINT NOT NULL); \
                  INSERT INTO t VALUES (1, '', 0)";
    run_sql(&base, create);
    let update = FencedTable::new("t", &["id"], "fence").unwrap().update(&["v"]).unwrap().text;
    let mut first = writer(&shell, url, &base, &update);
    let old = first.lead();
    assert_eq!(first.line(), "written");
    let guard = parent_of(old.pid);
    // First the one who watches the others; the command is stopped outside of a transaction.
    first.signal("-STOP");
    signal("-STOP", &guard.to_string());
    signal("-STOP", &old.pid.to_string());
    let second = writer(&shell, url, &base, &update);
    let new = second.lead();
    assert!(new.token > old.token);
    assert_eq!(second.line(), "written");
    while first.line_now().is_some() {}
    assert!(!is_dead(old.pid), "it is frozen and nothing else");
    signal("-CONT", &old.pid.to_string());
    wait_until("a late write", PATIENCE, || first.line_now().as_deref() == Some("refused"))
        .unwrap();
    signal("-CONT", &guard.to_string());
    wait_until_dead(old.pid);
    first.signal("-CONT");
    assert_eq!(first.code(), Some(75));
    while let Some(line) = first.line_now() {
        assert_eq!(line, "refused");
    }
    while let Some(line) = second.line_now() {
        assert_eq!(line, "written");
    }
    let row = run_sql(&base, "SELECT v FROM t");
    assert!(row.contains(&new.token.to_string()), "{row}");
}

fn run_sql(base: &Path, script: &str) -> String {
    let code = "import sqlite3, sys\n\
                base = sqlite3.connect(sys.argv[1], timeout=30)\n\
                for text in sys.argv[2].split(';'): print(base.execute(text).fetchall())\n\
                base.commit()";
    let output = Command::new("python3").args(["-c", code]).arg(base).arg(script).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_frozen_leader_on_redis_ends_with_75_and_its_late_write_is_refused() {
    let redis = Redis::start().unwrap();
    elect_alone_is_stopped(&redis.url());
    everything_is_stopped(&redis.url());
}

#[test]
fn a_frozen_leader_on_etcd_ends_with_75_and_its_late_write_is_refused() {
    let etcd = Etcd::start().unwrap();
    elect_alone_is_stopped(&etcd.url());
    everything_is_stopped(&etcd.url());
}

#[test]
fn a_frozen_leader_on_zookeeper_ends_with_75_and_its_late_write_is_refused() {
    let zookeeper = ZooKeeper::start().unwrap();
    elect_alone_is_stopped(&zookeeper.url());
    everything_is_stopped(&zookeeper.url());
}

/// On files the kernel holds the lock of a frozen process: nobody else leads, and it goes on.
#[test]
fn a_frozen_leader_on_files_leads_on() {
    let shell = Shell::new();
    let home = tempfile::tempdir().unwrap();
    let url = format!("file:{}", home.path().display());
    let mut first = shell.candidate(&url);
    let old = first.lead();
    first.signal("-STOP");
    let second = shell.candidate(&url);
    second.says("waiting: ");
    let began = boot_time();
    wait_until("the TTL to pass", PATIENCE, || boot_time() - began > TTL * 2).unwrap();
    first.signal("-CONT");
    assert!(second.line_now().is_none() && !is_dead(old.pid) && !first.has_ended());
    first.signal("-TERM");
    assert!(second.lead().token > old.token);
    assert_eq!(first.code(), Some(143));
}
