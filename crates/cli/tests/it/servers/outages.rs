//! What the command says while a server is away, after it was restarted, or if it is another kind
//! of server.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use frazil_rig::{AppendOnly, Redis, RedisCluster};
use serde_json::Value;

use crate::shell::Shell;

#[test]
fn next_says_for_how_long_ids_go_on_without_the_store() {
    let shell = Shell::new();
    let redis = Redis::start().unwrap();
    let url = redis.url();
    shell.data(&["store", "init", "--store", &url]);
    let mut issuing = shell
        .command(&["next", "-n", "10000000000", "--store", &url])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut watching =
        shell.command(&["workers", "watch", "--json", "--store", &url]).spawn().unwrap();
    let mut workers = BufReader::new(watching.stdout.take().unwrap()).lines();
    let held = |line: &String| line.contains("\"held\"");
    assert!(workers.any(|line| held(&line.unwrap())), "the worker is held");
    redis.kill();
    let mut said = BufReader::new(issuing.stderr.take().unwrap()).lines();
    let line = said.next().unwrap().unwrap();
    assert!(line.contains("; IDs go on for ") && line.ends_with(" s"), "{line}");
    for child in [&mut issuing, &mut watching] {
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

#[test]
fn watch_says_that_the_store_is_away_and_goes_on_when_it_is_back() {
    let shell = Shell::new();
    let redis = Redis::builder().persistent(AppendOnly::Always).start().unwrap();
    let url = redis.url();
    shell.data(&["store", "init", "--workers", "7-7", "--store", &url]);
    shell.data(&["next", "--store", &url]);
    let mut child =
        shell.command(&["workers", "watch", "--json", "--store", &url]).spawn().unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    let mut shown = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(shown.next().unwrap().contains("\"free\""));
    redis.kill();
    let away = said.next().unwrap();
    assert!(away.contains("the store is away"), "{away}");
    redis.restart().unwrap();
    assert_eq!(said.next().unwrap(), "the store is back");
    shell.data(&["next", "--store", &url]);
    let line: Value = serde_json::from_str(&shown.next().unwrap()).unwrap();
    assert_eq!(line["worker"], 7);
    let interrupt = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(interrupt.unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn after_a_restart_that_may_have_lost_writes_everything_says_why_nobody_is_let_in() {
    let shell = Shell::new();
    let redis = Redis::builder().persistent(AppendOnly::EverySecond).start().unwrap();
    let url = redis.url();
    shell.data(&["store", "init", "--store", &url]);
    shell.data(&["next", "--store", &url]);
    redis.restart().unwrap();
    // Before anybody tried, and after.
    for _ in 0..2 {
        let listed = shell.output(&["workers", "ls", "--json", "--store", &url]);
        let said = str::from_utf8(&listed.stderr).unwrap();
        assert!(said.contains("no worker is leased before 20"), "{said}");
        assert!(said.contains("restarted or another server took over"), "{said}");
        let worker: Value = serde_json::from_slice(&listed.stdout).unwrap();
        assert_eq!(worker["state"], "quarantined");
        let left = worker["seconds_left"].as_f64().unwrap();
        assert!((5.0..23.0).contains(&left), "newcomers wait for some seconds: {worker}");
        let shown = shell.data(&["store", "show", "--store", &url]);
        assert!(shown.contains("guarded      until 20"), "{shown}");
        let refused = ["next", "--patience", "1s", "--store", &url];
        shell.fails(&refused, 4, &["no worker before 20", "restarted or another server took over"]);
    }
}

#[test]
fn a_scheme_that_does_not_fit_the_server_is_refused() {
    let shell = Shell::new();
    let redis = Redis::start().unwrap();
    let cluster = RedisCluster::start(3).unwrap();
    let wrong = format!("redis+cluster://{}", redis.address());
    shell.fails(&["next", "--store", &wrong], 2, &["not a node of a cluster", "use redis:"]);
    for node in cluster.nodes() {
        let wrong = format!("redis://{}", node.address());
        shell.fails(&["next", "--store", &wrong], 2, &["node of a cluster", "redis+cluster:"]);
    }
}

#[test]
fn an_unreadable_meta_record_is_removed_and_created_anew() {
    let shell = Shell::new();
    let redis = Redis::start().unwrap();
    let url = redis.url();
    let run = |args: &[&str]| shell.output(&[args, &["--store", &url]].concat());
    assert!(run(&["store", "init", "--workers", "3-4"]).status.success());
    assert!(run(&["next"]).status.success());
    redis.cli(&["SET", "{frazil:default}:meta", "nonsense"]).unwrap();
    let refused = run(&["store", "repair"]);
    let said = str::from_utf8(&refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(4), "{said}");
    assert!(said.contains("DEL {frazil:default}:meta"), "{said}");
    redis.cli(&["DEL", "{frazil:default}:meta"]).unwrap();
    let repair = ["store", "repair", "--workers", "3-4", "--window", "90s"];
    let refused = run(&repair);
    assert_eq!(refused.status.code(), Some(4), "the server may lose it: {refused:?}");
    assert!(str::from_utf8(&refused.stderr).unwrap().contains("--accept-loss"), "{refused:?}");
    let repaired = run(&[&repair[..], &["--accept-loss"]].concat());
    assert!(repaired.status.success(), "{repaired:?}");
    assert_eq!(run(&["next"]).status.code(), Some(4), "it is in quarantine");
}
