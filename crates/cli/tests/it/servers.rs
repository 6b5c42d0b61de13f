//! Leasing from the command line, on real servers, and every way not to get in.

mod neighbours;
mod outages;
mod replicas;

use std::collections::BTreeSet;

use crate::promises::assert_documented;
use crate::shell::Shell;
use frazil_rig::{Certificates, Etcd, Proxy, Redis, ZooKeeper};

/// Issues from a store by hand: the first use waits and says so, later ones do not; released
/// workers are listed with their horizons; the promises are shown.
fn works_by_hand(url: &str) {
    let shell = Shell::new();
    let first = shell.output(&["next", "-n", "3", "--store", url]);
    assert!(first.status.success(), "{first:?}");
    let said = str::from_utf8(&first.stderr).unwrap();
    assert!(said.contains("waiting") && said.contains("store init"), "{said}");
    let mut ids: BTreeSet<String> =
        str::from_utf8(&first.stdout).unwrap().lines().map(str::to_owned).collect();
    for _ in 0..3 {
        let next = shell.output(&["next", "-n", "3", "--store", url]);
        assert_eq!((next.status.code(), next.stderr.as_slice()), (Some(0), &[][..]), "{next:?}");
        ids.extend(str::from_utf8(&next.stdout).unwrap().lines().map(str::to_owned));
    }
    assert_eq!(ids.len(), 12);
    let workers = shell.json_lines(&["workers", "ls", "--store", url, "--json"]);
    assert!(!workers.is_empty());
    for worker in &workers {
        assert_eq!(worker["state"], "free", "{worker}");
        assert!(worker["horizon_ms"].as_u64().unwrap() > 1_704_067_200_000, "{worker}");
    }
    let shown = &shell.json_lines(&["store", "show", "--store", url, "--json"])[0];
    assert_documented(shown);
    shell.fails(&["next", "--store", url, "--layout", "twitter"], 4, &["another layout"]);
    shell.fails(&["next", "--store", url, "--workers", "0-9"], 4, &["0 to 1023", "0 to 9"]);
    let new = ["--store", url, "--namespace", "new"];
    assert!(shell.output(&[&["store", "init"][..], &new].concat()).status.success());
    let at_once = shell.output(&[&["next"][..], &new].concat());
    assert_eq!((at_once.status.code(), at_once.stderr.as_slice()), (Some(0), &[][..]));
    moves_to_files(&shell, url);
}

/// What a server holds can be moved to a directory.
fn moves_to_files(shell: &Shell, url: &str) {
    let file = shell.home().join("export.jsonl");
    let export = shell.output(&["store", "export", "--store", url]);
    assert!(export.status.success(), "{export:?}");
    std::fs::write(&file, export.stdout).unwrap();
    let import = shell.output(&["store", "import", file.to_str().unwrap()]);
    assert!(import.status.success(), "{import:?}");
    let there = shell.json_lines(&["workers", "ls", "--store", url, "--json"]);
    let here = shell.json_lines(&["workers", "ls", "--json"]);
    assert_eq!(there.len(), here.len());
    for (there, here) in there.iter().zip(&here) {
        assert_eq!(
            (&there["worker"], &there["horizon_ms"]),
            (&here["worker"], &here["horizon_ms"])
        );
    }
}

#[test]
fn redis_works_by_hand() {
    works_by_hand(&Redis::start().unwrap().url());
}

#[test]
fn etcd_works_by_hand() {
    works_by_hand(&Etcd::start().unwrap().url());
}

#[test]
fn zookeeper_works_by_hand() {
    works_by_hand(&ZooKeeper::start().unwrap().url());
}

#[test]
fn every_way_not_to_get_in_has_its_own_message_and_code() {
    let shell = Shell::new();
    let redis = Redis::builder().password("hunter2").start().unwrap();
    let wrong = format!("redis://:hunter3@{}", redis.address());
    shell.fails(&["next", "--store", &wrong], 2, &["denied", "***", "FRAZIL_STORE_PASSWORD"]);
    shell.fails(&["next", "--store", &redis.url()], 2, &["NOAUTH", "FRAZIL_STORE_PASSWORD"]);
    let lone = format!("redis://hunter2@{}", redis.address());
    let said = shell.output(&["next", "--store", &lone]);
    assert_eq!(said.status.code(), Some(2));
    let said = str::from_utf8(&said.stderr).unwrap();
    assert!(said.contains("redis://:PASSWORD@host") && !said.contains("hunter2"), "{said}");
    for scheme in ["etcd", "zk"] {
        let no_user = format!("{scheme}://:hunter2@127.0.0.1:1");
        let form = format!("{scheme}://USER@host");
        shell.fails(&["next", "--store", &no_user], 2, &["has no user", &form]);
    }
    let file = shell.home().join("password");
    std::fs::write(&file, "hunter2\n").unwrap();
    let right = format!("{}?password_file={}", redis.url(), file.display());
    assert!(shell.output(&["store", "init", "--store", &right]).status.success());
    let mut by_environment = shell.command(&["next", "--store", &redis.url()]);
    assert!(by_environment.env("FRAZIL_STORE_PASSWORD", "hunter2").status().unwrap().success());
    redis.kill();
    for scheme in ["redis", "etcd", "zk"] {
        let nobody = format!("{scheme}://{}", redis.address());
        shell.fails(&["next", "--store", &nobody], 3, &["unavailable", "that the server runs"]);
    }
    std::fs::write(&file, "").unwrap();
    shell.fails(&["next", "--store", &right], 2, &["is empty"]);
    shell.fails(&["next", "--store", "redis://"], 2, &["write redis://HOST:6379"]);
    shell.fails(
        &["next", "--store", "redis://127.0.0.1:1?password_file=/nowhere"],
        2,
        &["/nowhere"],
    );
}

#[test]
fn a_server_that_never_answers_is_given_up_within_the_time_out() {
    let shell = Shell::new();
    let redis = Redis::start().unwrap();
    let proxy = Proxy::start(redis.address()).unwrap();
    proxy.black_hole();
    for scheme in ["redis", "etcd", "zk"] {
        let silent = format!("{scheme}://{}?timeout=700ms", proxy.address());
        shell.fails(&["next", "--store", &silent], 3, &[&proxy.address()]);
    }
}

#[test]
fn the_wrong_certificate_is_not_an_outage() {
    let shell = Shell::new();
    let certificates = Certificates::generate().unwrap();
    let redis = Redis::builder().tls(&certificates).start().unwrap();
    let with = |ca: &std::path::Path| format!("{}?ca={}", redis.url(), ca.display());
    assert!(shell.output(&["store", "init", "--store", &with(certificates.ca())]).status.success());
    assert!(shell.output(&["next", "--store", &with(certificates.ca())]).status.success());
    shell.fails(
        &["next", "--store", &with(certificates.other_ca())],
        2,
        &["denied", "certificate", "ca"],
    );
}

#[test]
fn a_server_that_may_forget_is_refused() {
    let shell = Shell::new();
    let forgetful = Redis::builder().line("maxmemory 10mb").line("maxmemory-policy allkeys-lru");
    let redis = forgetful.start().unwrap();
    shell.fails(&["next", "--store", &redis.url()], 4, &["refused for safety", "noeviction"]);
}
