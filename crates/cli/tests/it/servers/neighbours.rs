//! A second namespace with the same IDs, on servers that many may share.

use frazil_rig::{Etcd, Redis, ZooKeeper};
use serde_json::Value;

use crate::serving::Served;
use crate::shell::Shell;

/// Of four namespaces one issues IDs that another one issues too: nodes and the doctor name it.
fn is_told_of(url: &str) {
    let shell = Shell::new();
    let init = |namespace: &str, more: &[&str]| {
        let base = ["store", "init", "--store", url, "--namespace", namespace];
        shell.data(&[&base[..], more].concat());
    };
    init("one", &["--workers", "0-9"]);
    init("one-more", &["--workers", "5-14"]);
    init("apart", &["--workers", "20-29"]);
    init("unlike", &["--workers", "0-9", "--layout", "twitter"]);

    let doctor = ["doctor", "--json", "--store", url, "--namespace", "one", "--workers", "0-9"];
    let closed = ["--http", "127.0.0.1:0", "--grpc", "off", "--resp", "off"];
    let examined = shell.output(&[&doctor[..], &closed].concat());
    let rows = str::from_utf8(&examined.stdout).unwrap().lines();
    let rows: Vec<Value> = rows.map(|row| serde_json::from_str(row).unwrap()).collect();
    let is_told = |row: &&Value| row["detail"].to_string().contains("same IDs");
    let [row] = rows.iter().filter(is_told).collect::<Vec<_>>()[..] else { panic!("{rows:?}") };
    assert_eq!((&row["status"], &row["check"]), (&"warn".into(), &"namespace".into()), "{row}");
    assert!(row["detail"].as_str().unwrap().contains("\"one-more\""), "{row}");

    let mut served = Served::start(&["--store", url, "--namespace", "one", "--workers", "0-9"]);
    let line = served.line_with("both namespaces issue the same IDs");
    assert!(line.contains(" WARN ") && line.contains("\"one-more\""), "{line}");
    assert!(line.contains("workers 5 to 14"), "{line}");
    assert_eq!(served.request("POST", "/ids").0, 200, "a warning stops nobody");
}

#[test]
fn a_second_namespace_with_the_same_ids_is_told_of_on_redis() {
    is_told_of(&Redis::start().unwrap().url());
}

#[test]
fn a_second_namespace_with_the_same_ids_is_told_of_on_etcd() {
    is_told_of(&Etcd::start().unwrap().url());
}

#[test]
fn a_second_namespace_with_the_same_ids_is_told_of_on_zookeeper() {
    is_told_of(&ZooKeeper::start().unwrap().url());
}

/// A user who may not look around starts all the same.
#[test]
fn a_user_who_sees_its_own_keys_alone_starts() {
    let (shell, redis) = (Shell::new(), Redis::start().unwrap());
    for namespace in ["one", "two"] {
        shell.data(&["store", "init", "--store", &redis.url(), "--namespace", namespace]);
    }
    let user =
        ["ACL", "SETUSER", "app", "on", ">hunter2", "~{frazil:one}*", "&*", "+@all", "-scan"];
    assert_eq!(redis.cli(&user).unwrap().trim(), "OK");
    let url = format!("redis://app:hunter2@{}", redis.address());
    let id = shell.data(&["next", "--store", &url, "--namespace", "one"]);
    assert!(id.trim().parse::<u64>().is_ok(), "{id}");
    let doctor = ["doctor", "--json", "--store", &url, "--namespace", "one"];
    let closed = ["--http", "127.0.0.1:0", "--grpc", "off", "--resp", "off"];
    let examined = shell.output(&[&doctor[..], &closed].concat());
    let text = str::from_utf8(&examined.stdout).unwrap();
    let row = text.lines().find(|row| row.contains("cannot be seen"));
    assert!(row.is_some_and(|row| row.contains("\"ok\"")), "{text}");
}
