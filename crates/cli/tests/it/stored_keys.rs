//! API keys in the namespace's store, with two servers that go by them, on every store.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::desk::Desk;
use crate::logged::Logged;
use frazil_coord::internal::time::boot_time;
use frazil_rig::{AppendOnly, Etcd, Redis, ZooKeeper};
use serde_json::Value;

/// How long a revocation may take to reach every node.
const REACH: Duration = Duration::from_secs(1);
/// How long a key that was made may take, on a machine that does much else.
const PATIENCE: Duration = Duration::from_secs(30);

struct Server {
    served: Logged,
    address: String,
}

impl Server {
    fn start(desk: &Desk, url: &str, name: &str) -> Self {
        let listen = ["--http", "127.0.0.1:0", "--grpc", "off", "--resp", "off", "--node", name];
        let args = [&["serve", "--keys", "store", "--store", url][..], &listen].concat();
        let served = Logged::start(desk.command(&args));
        let address = served.wait_for("  HTTP  ", 1).rsplit('/').next().unwrap().to_owned();
        Self { served, address }
    }

    fn status(&self, key: &str) -> u16 {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let head = "POST /ids HTTP/1.1\r\nhost: x\r\nconnection: close";
        write!(stream, "{head}\r\nauthorization: Bearer {key}\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer.split(' ').nth(1).unwrap().parse().unwrap()
    }

    fn until(&self, key: &str, status: u16, limit: Duration) {
        let began = boot_time();
        loop {
            let told = self.status(key);
            if told == status {
                return;
            }
            let took = boot_time().saturating_sub(began);
            assert!(took < limit, "{told} after {took:?}");
        }
    }
}

/// The command on the list in a store.
struct Keys<'a> {
    desk: &'a Desk,
    url: &'a str,
}

impl Keys<'_> {
    fn run(&self, args: &[&str]) -> String {
        let list = ["--keys", "store", "--store", self.url];
        self.desk.data(&[&["key"], args, &list].concat()).trim().to_owned()
    }

    fn list(&self) -> Vec<Value> {
        let shown = self.run(&["ls", "--json"]);
        shown.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

fn id(key: &str) -> &str {
    key.split('_').nth(1).unwrap()
}

/// The life of keys: none, the first one, a replacement, and the end of one within a second.
fn keys_live_in(url: &str) {
    let desk = Desk::new();
    let keys = Keys { desk: &desk, url };
    let servers = ["one", "other"].map(|name| Server::start(&desk, url, name));
    for server in &servers {
        let said = server.served.wait_for("the store has no API key", 1);
        assert!(said.contains("frazil key new --keys store --store "), "{said}");
        server.served.wait_for("ready; try: curl", 1);
        assert_eq!(server.status("frz_00000000_00"), 401);
    }
    let first = keys.run(&["new", "--name", "app", "--role", "ids"]);
    let ops = keys.run(&["new", "--name", "ops", "--role", "admin"]);
    for server in &servers {
        server.until(&first, 200, PATIENCE);
        server.until(&ops, 403, PATIENCE);
    }
    let second = keys.run(&["rotate", id(&first), "--grace", "1h"]);
    assert_eq!(keys.list().len(), 3);
    for server in &servers {
        server.until(&second, 200, PATIENCE);
        assert_eq!(server.status(&first), 200);
    }
    keys.run(&["revoke", id(&first)]);
    for server in &servers {
        server.until(&first, 401, REACH);
        assert_eq!(server.status(&second), 200);
    }
    let table = keys.run(&["ls"]);
    assert!(table.contains(id(&second)) && !table.contains(id(&first)), "{table}");
    for mut server in servers {
        assert!(server.served.stop().success());
    }
    goes_with_an_export(&keys, &second);
}

/// What a store has of keys can be moved to a directory, whose own keys stay.
fn goes_with_an_export(keys: &Keys<'_>, key: &str) {
    let file = keys.desk.home().join("export.jsonl");
    fs::write(&file, keys.desk.data(&["store", "export", "--store", keys.url])).unwrap();
    let (file, there) =
        (file.to_str().unwrap(), format!("file:{}/there", keys.desk.home().display()));
    let import = || keys.desk.output(&["store", "import", file, "--store", &there]);
    assert!(import().status.success());
    let there = Keys { desk: keys.desk, url: &there };
    assert_eq!(there.list(), keys.list());
    there.run(&["revoke", id(key)]);
    let again = import();
    let said = String::from_utf8(again.stderr).unwrap();
    assert!(again.status.success() && said.contains("stay as they are"), "{said}");
    assert!(there.list().iter().all(|entry| entry["id"] != id(key)), "a revoked key came back");
}

#[test]
fn an_import_that_fails_half_way_says_that_keys_are_in_force_again() {
    let desk = Desk::new();
    let [from, to] = ["from", "to"].map(|name| format!("file:{}/{name}", desk.home().display()));
    desk.data(&["next", "--workers", "5-5", "--store", &from]);
    let key = Keys { desk: &desk, url: &from }.run(&["new", "--name", "app", "--role", "ids"]);
    let export = desk.data(&["store", "export", "--store", &from]);
    // The keys before the worker, which is held there.
    let [meta, worker, keys, end] = export.lines().collect::<Vec<_>>()[..] else {
        panic!("{export}")
    };
    let file = desk.home().join("export.jsonl");
    fs::write(&file, [meta, keys, worker, end].join("\n") + "\n").unwrap();
    let listen = ["--http", "127.0.0.1:0", "--grpc", "off", "--resp", "off"];
    let args = [&["serve", "--workers", "5-5", "--store", &to][..], &listen].concat();
    let mut served = Logged::start(desk.command(&args));
    served.wait_for("ready; try: curl", 1);
    let import = || desk.output(&["store", "import", file.to_str().unwrap(), "--store", &to]);
    let failed = import();
    let said = String::from_utf8(failed.stderr).unwrap();
    assert_eq!(failed.status.code(), Some(4), "{said}");
    assert!(said.contains("is held") && said.contains("in force again"), "{said}");
    assert_eq!(Keys { desk: &desk, url: &to }.list()[0]["id"], id(&key));
    // The next one has nothing to do with them.
    let said = String::from_utf8(import().stderr).unwrap();
    assert!(said.contains("is held") && !said.contains("in force"), "{said}");
    assert!(served.stop().success());
}

#[test]
fn keys_live_in_a_directory() {
    let home = tempfile::tempdir().unwrap();
    keys_live_in(&format!("file:{}/store", home.path().display()));
}

#[test]
fn keys_live_in_redis() {
    let redis = Redis::builder().persistent(AppendOnly::Always).start().unwrap();
    keys_live_in(&redis.url());
}

#[test]
fn keys_live_in_etcd() {
    keys_live_in(&Etcd::start().unwrap().url());
}

#[test]
fn keys_live_in_zookeeper() {
    keys_live_in(&ZooKeeper::start().unwrap().url());
}

#[test]
fn the_first_key_may_come_before_the_first_server() {
    let desk = Desk::new();
    let etcd = Etcd::start().unwrap();
    let redis = Redis::builder().persistent(AppendOnly::Always).start().unwrap();
    let zookeeper = ZooKeeper::start().unwrap();
    let file = format!("file:{}/store", desk.home().display());
    for url in [file, etcd.url(), redis.url(), zookeeper.url()] {
        let keys = Keys { desk: &desk, url: &url };
        let key = keys.run(&["new", "--name", "app", "--role", "ids"]);
        let mut server = Server::start(&desk, &url, "one");
        server.served.wait_for("ready; try: curl", 1);
        server.until(&key, 200, PATIENCE);
        assert_eq!(server.served.count("the store has no API key"), 0, "{url}");
        assert!(server.served.stop().success());
    }
}

#[test]
fn a_key_in_the_store_can_be_made_for_a_certificate_and_servers_say_if_they_ask_for_none() {
    let desk = Desk::new();
    let url = format!("file:{}/store", desk.home().display());
    let keys = Keys { desk: &desk, url: &url };
    let mut server = Server::start(&desk, &url, "one");
    server.served.wait_for("ready; try: curl", 1);
    let warning = "keys name certificates, and no client is asked for one";
    assert_eq!(server.served.count(warning), 0);
    let args = ["new", "--name", "app", "--role", "ids", "--certificate-subject", "CN=app"];
    assert_eq!(keys.run(&args), "", "there is no text to print");
    server.served.wait_for(warning, 1);
    assert_eq!(keys.list()[0]["certificate_subject"], "CN=app");
    assert!(server.served.stop().success());
}

#[test]
fn keys_that_are_made_at_once_are_all_there() {
    let desk = Desk::new();
    let etcd = Etcd::start().unwrap();
    let (url, desk) = (etcd.url(), &desk);
    let keys = Keys { desk, url: &url };
    std::thread::scope(|scope| {
        let new = |name: String| keys.run(&["new", "--name", &name, "--role", "ids"]);
        let made: Vec<_> =
            (0..6).map(|number| scope.spawn(move || new(format!("app-{number}")))).collect();
        made.into_iter().for_each(|one| drop(one.join().unwrap()));
    });
    assert_eq!(keys.list().len(), 6);
}

#[test]
fn nonsense_about_keys_in_a_store_is_told_so() {
    let desk = Desk::new();
    let store = format!("file:{}/store", desk.home().display());
    let cases: [(&[&str], i32, &str); 5] = [
        (&["key", "revoke", "nobody", "--store", &store], 1, "there is no key \"nobody\""),
        (&["key", "rotate", "nobody", "--store", &store], 1, "there is no key \"nobody\""),
        (&["key", "ls", "--store", "memory:"], 2, "nobody can write keys to memory:"),
        (&["key", "ls", "--store", "redis://127.0.0.1:1?timeout=1s"], 3, "host and port"),
        (&["serve", "--store", "memory:"], 2, "nobody can write keys to memory:"),
    ];
    for (args, code, expected) in cases {
        let output = desk.output(&[args, &["--keys", "store"]].concat());
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{args:?}: {said}");
        assert!(said.contains(expected), "{args:?}: {said}");
    }
    assert!(!desk.home().join("store").exists(), "what only looks leaves nothing behind");
}
