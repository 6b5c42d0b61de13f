//! `frazil workers drain`, `rotate`, `release` and `ls --node`: what they ask, and what they make
//! of every answer.

pub(crate) mod counter;
mod live;

use std::process::{Command, Output};
use std::sync::{Arc, Mutex};

use crate::serving::Served;
use crate::shell::Shell;
use counter::{Counter, tls};
use frazil_rig::Certificates;
use frazil_wire::{ApiError, Reason};
use serde_json::{Value, json};

const CANARY: &str = "frz_canary_0123456789abcdef";

/// Runs the command with a key that must not be seen anywhere.
fn with_key(shell: &Shell, args: &[&str]) -> Output {
    let output = command(shell, args).env("FRAZIL_KEY", CANARY).output().unwrap();
    let said = format!("{output:?}");
    assert!(!said.contains(CANARY), "{said}");
    output
}

fn command(shell: &Shell, args: &[&str]) -> Command {
    let mut command = shell.command(args);
    for variable in ["SERVER", "KEY", "KEY_FILE", "CA", "CERT", "CERT_KEY"] {
        command.env_remove(format!("FRAZIL_{variable}"));
    }
    command
}

fn problem(reason: Reason, detail: &str) -> (u16, String) {
    let problem = ApiError::new(reason, detail).to_problem();
    (problem.status, serde_json::to_string(&problem).unwrap())
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn every_verb_asks_what_the_contract_says_and_shows_its_key() {
    let shell = Shell::new();
    let drained = r#"{"node":"n1","state":"draining","released":[7,9]}"#;
    let rotated = r#"{"node":"n1","moved":[{"from":7,"to":9}]}"#;
    for (args, line, reply, data) in [
        (&["drain"][..], "POST /v1/node:drain HTTP/1.1", drained, "7\n9\n"),
        (&["rotate"], "POST /v1/node:rotate HTTP/1.1", rotated, "7 9\n"),
        (&["rotate", "--worker", "7"], "POST /v1/workers/7:release HTTP/1.1", rotated, "7 9\n"),
        (&["release", "7"], "POST /v1/workers/7:release HTTP/1.1", rotated, "7 9\n"),
        (
            &["release", "7", "--token", "1794745654763"],
            "POST /v1/workers/7:release?token=1794745654763 HTTP/1.1",
            rotated,
            "7 9\n",
        ),
    ] {
        for json in [false, true] {
            let server = Counter::saying(200, reply);
            let url = server.url();
            let mut all = [&["workers"], args, &["--server", &url]].concat();
            all.extend(json.then_some("--json"));
            let output = with_key(&shell, &all);
            assert_eq!(output.status.code(), Some(0), "{output:?}");
            let asked = server.only();
            assert_eq!(asked.line, line);
            assert_eq!(asked.header("authorization"), Some(&*format!("Bearer {CANARY}")));
            if json {
                let printed: Value = serde_json::from_slice(&output.stdout).unwrap();
                assert_eq!(printed, serde_json::from_str::<Value>(reply).unwrap());
            } else {
                assert_eq!(text(&output.stdout), data);
            }
            let expected = if args[0] == "drain" { "safe to stop n1" } else { "worker 7" };
            assert!(text(&output.stderr).contains(expected), "{output:?}");
        }
    }
}

#[test]
fn every_refusal_has_an_exit_code_and_says_what_to_do() {
    let shell = Shell::new();
    for (reason, detail, code, texts) in [
        (Reason::Unauthenticated, "no such key", 2, &["UNAUTHENTICATED", "FRAZIL_KEY"][..]),
        (Reason::Forbidden, "the key may issue only", 2, &["FORBIDDEN", "may issue only", "role"]),
        (Reason::NotFound, "nobody holds worker 7", 1, &["nobody holds worker 7"]),
        (Reason::HeldByOther, "n2 holds worker 7", 1, &["HELD_BY_OTHER", "n2 holds"]),
        (Reason::TokenStale, "its token is 12", 1, &["TOKEN_STALE", "its token is 12"]),
        (Reason::QuotaExceeded, "too many", 3, &["QUOTA_EXCEEDED", "quota"]),
        (Reason::NoWorker, "no other worker in time", 3, &["NO_WORKER", "no other worker"]),
    ] {
        let (status, body) = problem(reason, detail);
        let server = Counter::saying(status, &body);
        let output =
            with_key(&shell, &["workers", "release", "7", "--server", &server.url(), "--json"]);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(code), 0), "{output:?}");
        for text in texts {
            assert!(str::from_utf8(&output.stderr).unwrap().contains(text), "{output:?}");
        }
    }
}

#[test]
fn without_a_key_a_user_is_told_how_to_give_one() {
    let shell = Shell::new();
    let (status, body) = problem(Reason::Unauthenticated, "no key");
    let server = Counter::saying(status, &body);
    let url = server.url();
    for args in [&["workers", "rotate"][..], &["next"]] {
        let args = [args, &["--server", &url]].concat();
        let output = command(&shell, &args).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(text(&output.stderr).contains("--key-file"), "{output:?}");
    }
}

#[test]
fn a_key_comes_from_its_file_and_a_bad_file_is_named_without_its_content() {
    let shell = Shell::new();
    let path = shell.home().join("key");
    let file = path.to_str().unwrap();
    let server = Counter::saying(200, r#"{"node":"n1","moved":[]}"#);
    let url = server.url();
    let args = ["workers", "rotate", "--server", &url, "--key-file", file];
    std::fs::write(&path, format!("{CANARY}\n")).unwrap();
    let output = command(&shell, &args).env("FRAZIL_KEY", "another").output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(server.only().header("authorization"), Some(&*format!("Bearer {CANARY}")));
    for (content, why) in [
        (String::new(), "is empty"),
        (CANARY.repeat(200), "more than 4096 bytes"),
        (format!("{CANARY}\n{CANARY}"), "characters that no key has"),
    ] {
        std::fs::write(&path, content).unwrap();
        let output = command(&shell, &args).output().unwrap();
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(why) && !said.contains(CANARY), "{said}");
    }
    assert_eq!(server.requests(), 1, "nothing was sent without a key");
}

#[test]
fn what_is_no_frazil_server_is_told_apart_from_none() {
    let shell = Shell::new();
    for (status, body, repeated) in [
        (200, "hello", false),
        (404, "<html>", false),
        (302, "", false),
        (400, "this port speaks TLS: use https://\n", true),
        (400, "two\nlines", false),
    ] {
        let server = Counter::saying(status, body);
        let output = with_key(&shell, &["workers", "drain", "--server", &server.url()]);
        assert_eq!(output.status.code(), Some(3), "{output:?}");
        let said = text(&output.stderr);
        assert!(said.contains("not as a frazil server"), "{said}");
        assert_eq!(
            said.contains(&format!("{:?}", body.trim())) && !body.is_empty(),
            repeated,
            "{said}"
        );
    }
    for (url, code, why) in [
        ("http://127.0.0.1:1", 3, "frazil serve"),
        ("127.0.0.1:1", 2, "http://HOST:PORT"),
        (&*format!("http://me:{CANARY}@127.0.0.1:1"), 2, "--key-file"),
    ] {
        for args in [&["workers", "drain"][..], &["workers", "release", "7"], &["next"]] {
            let output = with_key(&shell, &[args, &["--server", url]].concat());
            assert_eq!(output.status.code(), Some(code), "{output:?}");
            assert!(text(&output.stderr).contains(why), "{output:?}");
        }
    }
}

#[test]
fn tls_trusts_only_the_authority_that_is_named_and_shows_a_certificate() {
    let shell = Shell::new();
    let certificates = Certificates::generate().unwrap();
    let path = |path: &std::path::Path| path.to_str().unwrap().to_owned();
    let (ca, other) = (path(certificates.ca()), path(certificates.other_ca()));
    let (cert, key) = (path(certificates.client_cert()), path(certificates.client_key()));
    let reply = |_: &counter::Asked| (200, r#"{"node":"n1","moved":[]}"#.to_owned());
    let (server_cert, server_key) = (certificates.server_cert(), certificates.server_key());
    let plain = Counter::serve(Some(tls(server_cert, server_key, None)), reply);
    let strict = tls(server_cert, server_key, Some(certificates.ca()));
    let strict = Counter::serve(Some(strict), reply);
    let own = ["--cert", &cert, "--cert-key", &key];
    for (server, args, code) in [
        (&plain, &["--ca", &ca][..], 0),
        (&plain, &["--ca", &other], 2),
        (&plain, &[], 2),
        (&strict, &[&["--ca", &*ca][..], &own].concat(), 0),
    ] {
        let before = server.requests();
        let url = server.https();
        let args = [&["workers", "rotate", "--server", &url], args].concat();
        let output = with_key(&shell, &args);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {output:?}");
        let was_asked = server.requests() > before;
        assert_eq!(was_asked, code == 0, "the key is sent to nobody who is not trusted");
        assert!(code == 0 || text(&output.stderr).contains("--ca"), "{output:?}");
    }
    let (server_key, url) = (path(server_key), strict.https());
    let mixed = ["workers", "rotate", "--server", &url, "--ca", &ca, "--cert", &cert, "--cert-key"];
    let output = with_key(&shell, &[&mixed[..], &[&server_key]].concat());
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(text(&output.stderr).contains("do not go together"), "{output:?}");
    // Depending on who is faster, the client reads why or only that it was hung up on.
    let output = with_key(&shell, &["workers", "rotate", "--server", &strict.https(), "--ca", &ca]);
    assert!(matches!(output.status.code(), Some(2 | 3)), "{output:?}");
    assert!(text(&output.stderr).contains("--cert"), "{output:?}");
    assert_eq!(strict.requests(), 1, "only the one with a certificate");
    shell.fails(
        &["workers", "rotate", "--server", &plain.https(), "--ca", "/nowhere"],
        2,
        &["/nowhere", "cannot be read"],
    );
}

/// A real node that says in the store that it is reached at another server, which a test runs.
struct Site {
    shell: Shell,
    store: String,
    node: Arc<Mutex<Served>>,
}

impl Site {
    fn new(advertise: &str) -> Self {
        let shell = Shell::new();
        let store = format!("file:{}", shell.home().join("store").display());
        let args = ["--store", &store, "--node", "n1", "--advertise", advertise, "--lanes", "2"];
        let mut node = Served::start(&args);
        node.wait_until_ready();
        let site = Self { shell, store, node: Arc::new(Mutex::new(node)) };
        let held = |site: &Self| site.shell.output(&site.args(&["ls", "--node", "n1"]));
        frazil_rig::wait_until("both lanes", std::time::Duration::from_secs(30), || {
            text(&held(&site).stderr).contains("workers ")
        })
        .unwrap();
        site
    }

    fn args<'a>(&'a self, args: &[&'a str]) -> Vec<&'a str> {
        [&["workers"], args, &["--store", &self.store]].concat()
    }
}

/// Answers what it is told to later.
type Later = Arc<Mutex<Option<Box<dyn Fn() -> (u16, String) + Send>>>>;

fn server_for_later() -> (Counter, Later) {
    let later: Later = Arc::default();
    let answer = later.clone();
    let server = Counter::start(move |_| (answer.lock().unwrap().as_ref().unwrap())());
    (server, later)
}

#[test]
fn a_node_is_found_by_its_name_and_is_safe_to_stop_when_the_store_says_so() {
    let (server, later) = server_for_later();
    let site = Site::new(&server.url());
    let drained = json!({ "node": "n1", "state": "draining", "released": [1, 2] }).to_string();
    // A server that lies is not believed.
    let lie = drained.clone();
    *later.lock().unwrap() = Some(Box::new(move || (200, lie.clone())));
    let args = site.args(&["drain", "n1", "--patience", "300ms"]);
    let output = with_key(&site.shell, &args);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0), "{output:?}");
    assert!(text(&output.stderr).contains("n1 still holds workers"), "{output:?}");
    assert_eq!(server.only().line, "POST /v1/node:drain HTTP/1.1");
    // Also where the address was given, if the store is named too.
    let url = server.url();
    let args = site.args(&["drain", "--server", &url, "--patience", "300ms"]);
    assert_eq!(with_key(&site.shell, &args).status.code(), Some(1));
    // One that releases is.
    let node = site.node.clone();
    *later.lock().unwrap() = Some(Box::new(move || {
        node.lock().unwrap().stop();
        (200, drained.clone())
    }));
    let output = with_key(&site.shell, &site.args(&["drain", "n1"]));
    assert_eq!((output.status.code(), &*output.stdout), (Some(0), &b"1\n2\n"[..]), "{output:?}");
    assert!(text(&output.stderr).contains("safe to stop n1"), "{output:?}");
    // Nothing is left to do then, and nobody is asked.
    let before = server.requests();
    for args in [&["drain", "n1"][..], &["ls", "--node", "n1"]] {
        let output = with_key(&site.shell, &site.args(args));
        assert_eq!((output.status.code(), output.stdout.len()), (Some(0), 0), "{output:?}");
        assert!(text(&output.stderr).contains("n1 holds no worker: it is safe to stop it"));
    }
    let output = with_key(&site.shell, &site.args(&["rotate", "n1"]));
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert_eq!(server.requests(), before);
}

#[test]
fn a_node_of_this_machine_is_drained_by_its_name_whatever_it_advertises() {
    for more in [&[][..], &["--advertise", "http://127.0.0.1:1"]] {
        let shell = Shell::new();
        let store = format!("file:{}", shell.home().join("store").display());
        let args = ["--store", &store, "--node", "n1", "--admin", "127.0.0.1:0"];
        let mut node = Served::start(&[&args, more].concat());
        node.wait_until_ready();
        let output = shell.output(&["workers", "drain", "n1", "--store", &store]);
        assert_eq!(output.status.code(), Some(0), "{more:?}: {output:?}");
        assert!(text(&output.stderr).contains("safe to stop n1"), "{output:?}");
    }
}

#[test]
fn a_node_that_cannot_be_reached_or_answers_late_is_told_apart() {
    let site = Site::new("http://127.0.0.1:1");
    let store = ["--store", &site.store];
    for args in [&["drain", "n1"][..], &["rotate", "n1"]] {
        site.shell.fails(&[&["workers"], args, &store].concat(), 3, &["does not answer"]);
    }
    site.shell.fails(&site.args(&["drain", "n2"]), 1, &["no node n2", "n1"]);
    site.shell.fails(&site.args(&["release", "4000"]), 1, &["nobody holds worker 4000", "n1"]);
    site.shell.fails(
        &site.args(&["drain", "n1", "--server", "http://127.0.0.1:1"]),
        2,
        &["one of the two"],
    );
    // Accepts and never answers.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    let late = ["workers", "drain", "--server", &url, "--patience", "200ms"];
    site.shell.fails(&late, 3, &["does not answer"]);
}

#[test]
fn a_late_node_still_holds_its_workers() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let site = Site::new(&format!("http://{}", silent.local_addr().unwrap()));
    let args = site.args(&["drain", "n1", "--patience", "300ms"]);
    site.shell.fails(&args, 1, &["n1 still holds workers", "SIGTERM"]);
}

#[test]
fn the_holder_of_a_worker_is_found() {
    let server = Counter::saying(200, r#"{"node":"n1","moved":[{"from":1,"to":3}]}"#);
    let site = Site::new(&server.url());
    let held = site.shell.json_lines(&site.args(&["ls", "--json"]));
    let worker = held[0]["worker"].to_string();
    let output = with_key(&site.shell, &site.args(&["release", &worker]));
    assert_eq!((output.status.code(), &*output.stdout), (Some(0), &b"1 3\n"[..]), "{output:?}");
    assert_eq!(server.only().line, format!("POST /v1/workers/{worker}:release HTTP/1.1"));
}

#[test]
fn ls_of_a_node_says_whether_it_can_be_stopped() {
    let site = Site::new("http://127.0.0.1:1");
    let output = site.shell.output(&site.args(&["ls", "--node", "n1", "--json"]));
    let held: Vec<Value> =
        text(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((output.status.code(), held.len()), (Some(1), 2), "{output:?}");
    let workers: Vec<_> = held.iter().map(|view| view["worker"].to_string()).collect();
    let expected = format!("n1 holds workers {}: drain it first", workers.join(", "));
    assert!(text(&output.stderr).contains(&expected), "{output:?}");
    assert!(held.iter().all(|view| view["holder"] == "n1" && view["state"] == "held"));
    let output = site.shell.output(&site.args(&["ls", "--node", "n1"]));
    assert_eq!((output.status.code(), text(&output.stdout).lines().count()), (Some(1), 3));
    // Nobody of that name: it is mistyped.
    let output = site.shell.output(&site.args(&["ls", "--node", "n\u{1b}2"]));
    assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0), "{output:?}");
    let said = text(&output.stderr);
    assert!(said.contains("no node") && said.contains("n1") && !said.contains('\u{1b}'), "{said}");
    // Without --node it is a list of all, and no judgement.
    assert_eq!(site.shell.output(&site.args(&["ls"])).status.code(), Some(0));
    site.node.lock().unwrap().stop();
    let output = site.shell.output(&site.args(&["ls", "--node", "n1"]));
    assert_eq!((output.status.code(), output.stdout.len()), (Some(0), 0), "{output:?}");
    assert!(text(&output.stderr).starts_with("n1 holds no worker: it is safe to stop it"));
}
