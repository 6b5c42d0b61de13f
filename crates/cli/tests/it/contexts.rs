//! `frazil context`, and what other commands take from a context.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::json;

use crate::shell::Shell;
use crate::verbs::counter::Counter;

const CANARY: &str = "frz_canary_0123456789abcdef";

fn file(shell: &Shell) -> PathBuf {
    shell.home().join("config/frazil/contexts.toml")
}

/// A directory of the shell as a store.
fn store(shell: &Shell, name: &str) -> String {
    format!("file:{}/{name}", shell.home().display())
}

fn add(shell: &Shell, args: &[&str]) {
    shell.data(&[&["context", "add"][..], args].concat());
}

/// A command in whose environment nothing names a server or a key.
fn command(shell: &Shell, args: &[&str]) -> Command {
    let mut command = shell.command(args);
    for variable in ["SERVER", "KEY", "KEY_FILE", "CA", "CERT", "CERT_KEY"] {
        command.env_remove(format!("FRAZIL_{variable}"));
    }
    command
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// Which store and which namespace `workers ls` looked at. None of them exists, and that is said.
fn looked_at(mut command: Command) -> (String, String) {
    let output = command.output().unwrap();
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    let (store, rest) = said.split_once(" has no namespace \"").expect(&said);
    let store = store.rsplit(['/', ' ']).next().unwrap();
    (store.to_owned(), rest.split('"').next().unwrap().to_owned())
}

fn looks_at(store: &str, namespace: &str) -> (String, String) {
    (store.to_owned(), namespace.to_owned())
}

#[test]
fn contexts_are_added_used_listed_and_removed() {
    let shell = Shell::new();
    assert_eq!(shell.json_lines(&["context", "ls", "--json"]), Vec::<serde_json::Value>::new());
    let key = shell.home().join("prod.key");
    fs::write(&key, CANARY).unwrap();
    let key = key.to_str().unwrap();
    add(&shell, &["prod", "--server", "https://h:1", "--key-file", key, "--use"]);
    add(&shell, &["orders", "--store", "etcd://h", "--namespace", "orders"]);
    let listed = shell.json_lines(&["context", "ls", "--json"]);
    let orders =
        json!({"context": "orders", "current": false, "store": "etcd://h", "namespace": "orders"});
    let prod =
        json!({"context": "prod", "current": true, "server": "https://h:1", "key_file": key});
    assert_eq!(listed, [orders, prod]);
    assert!(shell.data(&["context", "ls"]).contains("*  prod"));

    let mode = |path: PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(file(&shell)), 0o600);
    assert_eq!(mode(file(&shell).parent().unwrap().to_owned()), 0o700);
    assert!(!fs::read_to_string(file(&shell)).unwrap().contains(CANARY));

    shell.data(&["context", "use", "orders"]);
    shell.data(&["context", "rm", "orders"]);
    let listed = shell.json_lines(&["context", "ls", "--json"]);
    assert_eq!((listed.len(), &listed[0]["current"]), (1, &json!(false)));
}

#[test]
fn a_file_that_is_named_is_meant_from_every_directory() {
    let shell = Shell::new();
    let mut add =
        shell.command(&["context", "add", "a", "--server", "https://h", "--ca", "ca.pem"]);
    assert!(add.current_dir(shell.home()).status().unwrap().success());
    let home = fs::canonicalize(shell.home()).unwrap();
    let ca = shell.json_lines(&["context", "ls", "--json"])[0]["ca"].as_str().unwrap().to_owned();
    assert_eq!(fs::canonicalize(PathBuf::from(ca).parent().unwrap()).unwrap(), home);
    shell.fails(&["context", "add", "b", "--store", "file:here"], 2, &["begins with /"]);
}

#[test]
fn flags_count_for_more_than_a_typed_context_that_for_more_than_the_environment() {
    let shell = Shell::new();
    let [used, typed, set, flag] =
        ["used", "typed", "set", "flag"].map(|name| (name, store(&shell, name)));
    for (name, url) in [&used, &typed, &set] {
        add(&shell, &[name, "--store", url, "--namespace", &format!("of-{name}")]);
    }
    let list = |args: &[&str]| command(&shell, &[&["workers", "ls"][..], args].concat());
    let with = |args: &[&str], variables: &[(&str, &str)]| {
        let mut list = list(args);
        list.envs(variables.iter().copied());
        looked_at(list)
    };
    assert_eq!(with(&[], &[("FRAZIL_CONTEXT", "set")]), looks_at("set", "of-set"));
    shell.data(&["context", "use", "used"]);
    assert_eq!(with(&[], &[]), looks_at("used", "of-used"));
    assert_eq!(with(&[], &[("FRAZIL_CONTEXT", "set")]), looks_at("set", "of-set"));
    assert_eq!(with(&[], &[("FRAZIL_CONTEXT", "")]), looks_at("used", "of-used"));
    assert_eq!(with(&[], &[("FRAZIL_STORE", "")]), looks_at("used", "of-used"));
    // A namespace goes with its store.
    let variable = [("FRAZIL_STORE", flag.1.as_str()), ("FRAZIL_CONTEXT", "set")];
    assert_eq!(with(&[], &variable), looks_at("flag", "default"));
    assert_eq!(with(&["--context", "typed"], &variable), looks_at("typed", "of-typed"));
    let namespace = [("FRAZIL_NAMESPACE", "variable")];
    assert_eq!(with(&[], &namespace), looks_at("used", "variable"));
    assert_eq!(with(&["--context", "typed"], &namespace), looks_at("typed", "of-typed"));
    let flags = ["--context", "typed", "--namespace", "flag"];
    assert_eq!(with(&flags, &namespace), looks_at("typed", "flag"));
    let flags = ["--context", "typed", "--store", &flag.1];
    assert_eq!(with(&flags, &[]), looks_at("flag", "default"));
}

#[test]
fn a_key_is_shown_to_the_server_of_its_context_alone() {
    let shell = Shell::new();
    let key = shell.home().join("prod.key");
    fs::write(&key, CANARY).unwrap();
    let ours = Counter::saying(404, "{}");
    add(&shell, &["prod", "--server", &ours.url(), "--key-file", key.to_str().unwrap(), "--use"]);
    let next = command(&shell, &["next"]).output().unwrap();
    assert!(!format!("{next:?}").contains(CANARY));
    let bearer = format!("Bearer {CANARY}");
    assert_eq!(ours.only().header("authorization"), Some(bearer.as_str()));

    for by_flag in [true, false] {
        let other = Counter::saying(404, "{}");
        let url = other.url();
        let mut next = match by_flag {
            true => command(&shell, &["next", "--server", &url]),
            false => command(&shell, &["next"]),
        };
        if !by_flag {
            next.env("FRAZIL_SERVER", &url);
        }
        assert!(!next.output().unwrap().status.success());
        assert_eq!(other.only().header("authorization"), None);
    }
    assert_eq!(ours.requests(), 1);
}

#[test]
fn the_key_of_the_environment_is_not_shown_to_a_context_that_is_named() {
    let shell = Shell::new();
    for (args, shown) in
        [(&["next", "--context", "other"][..], None), (&["next"], Some(format!("Bearer {CANARY}")))]
    {
        let server = Counter::saying(404, "{}");
        add(&shell, &["other", "--server", &server.url(), "--replace", "--use"]);
        let mut next = command(&shell, args);
        assert!(!next.env("FRAZIL_KEY", CANARY).output().unwrap().status.success());
        assert_eq!(server.only().header("authorization"), shown.as_deref());
    }
}

#[test]
fn next_asks_the_server_of_a_context_unless_a_store_or_a_worker_is_named() {
    let shell = Shell::new();
    let server = Counter::saying(404, "{}");
    let store = store(&shell, "here");
    add(&shell, &["both", "--server", &server.url(), "--store", &store, "--use"]);
    for args in [
        &["next", "--store", &store][..],
        &["next", "--worker", "7"],
        &["next", "--workers", "0-1023"],
    ] {
        let output = command(&shell, args).output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
    }
    for variable in [("FRAZIL_STORE", store.as_str()), ("FRAZIL_WORKER", "7")] {
        let mut next = command(&shell, &["next"]);
        assert!(next.env(variable.0, variable.1).status().unwrap().success(), "{variable:?}");
    }
    assert_eq!(server.requests(), 0);
    // What is typed counts for more than a variable.
    let mut next = command(&shell, &["next", "--context", "both"]);
    next.env("FRAZIL_WORKER", "7").env("FRAZIL_NAMESPACE", "n").env("FRAZIL_STORE", &store);
    assert!(!next.status().unwrap().success());
    assert_eq!(server.requests(), 1);
}

#[test]
fn what_cannot_be_is_said() {
    let shell = Shell::new();
    let url = store(&shell, "a");
    shell.fails(
        &["workers", "ls", "--context", "prod"],
        2,
        &["no context \"prod\"", "context add"],
    );
    add(&shell, &["prod", "--store", &url]);
    add(&shell, &["asked", "--server", "http://h"]);
    for (args, texts) in [
        (&["workers", "ls", "--context", "prdo"][..], &["did you mean prod?"][..]),
        (&["context", "use", "prdo"], &["did you mean prod?"]),
        (&["context", "rm", "elsewhere"], &["frazil context ls"]),
        (&["context", "add", "prod", "--store", &url], &["already", "--replace"]),
        (&["context", "add", "-x", "--store", &url], &["-x"]),
        (&["context", "add", "a b", "--store", &url], &["letters"]),
        (&["context", "add", "x"], &["--server"]),
        (&["context", "add", "x", "--store", "redis://me:canary@h"], &["password_file"]),
        (
            &["context", "add", "x", "--store", "redis://h?password_file=secret"],
            &["?password_file=", "begins with /"],
        ),
        (&["context", "add", "x", "--server", "http://me:canary@h"], &["--key-file"]),
        (&["workers", "ls", "--context", "asked"], &["names no store"]),
        (&["workers", "ls", "--context", ""], &["--context"]),
        (&["decode", "1", "--context", "prod"], &["--context"]),
    ] {
        shell.fails(args, 2, texts);
        assert!(!stderr(&shell.output(args)).contains("canary"), "{args:?}");
    }
    shell.data(&["context", "add", "prod", "--store", &url, "--replace"]);
    fs::write(file(&shell), "current = \"gone\"\n[contexts.a]\nkey = \"canary\"\n").unwrap();
    shell.fails(&["workers", "ls"], 2, &["contexts.toml:3", "key"]);
    assert!(!stderr(&shell.output(&["workers", "ls"])).contains("canary"));
    fs::write(file(&shell), "[contexts.a]\nstore = [\"redis://me:canary@h\"]\n").unwrap();
    shell.fails(&["workers", "ls"], 2, &["contexts.toml:2", "expected a string"]);
    assert!(!stderr(&shell.output(&["workers", "ls"])).contains("canary"));
    fs::write(file(&shell), "current = \"gone\"\n").unwrap();
    shell.fails(&["workers", "ls"], 2, &["no context \"gone\""]);
    // Who says where needs no context.
    shell.fails(&["workers", "ls", "--store", &url], 1, &["has no namespace"]);
}

#[test]
fn what_is_about_this_machine_takes_no_context() {
    let shell = Shell::new();
    add(&shell, &["far", "--store", "etcd://192.0.2.1:1", "--use"]);
    assert!(!shell.data(&["config", "show"]).contains("192.0.2.1"));
    let demo = ["jobs", "demo", "--headless", "--nodes", "1", "--jobs", "1"];
    assert!(command(&shell, &demo).status().unwrap().success());
}
