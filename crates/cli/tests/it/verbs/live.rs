//! The verbs against a real server, with keys.

use std::net::TcpListener;

use super::{command, text};
use crate::serving::Served;
use crate::shell::Shell;

/// An address that nobody listens on at the moment.
fn free_address() -> String {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
}

#[test]
fn a_node_is_moved_and_drained_by_its_name_and_then_it_is_safe_to_stop() {
    let shell = Shell::new();
    let store = format!("file:{}", shell.home().join("store").display());
    let keys = shell.home().join("keys.toml").display().to_string();
    let key = |role: &str| {
        let args = ["key", "new", "--name", role, "--role", role, "--file", &keys];
        shell.data(&args).trim().to_owned()
    };
    let (admin, ids) = (key("admin"), key("ids"));
    let at = free_address();
    let url = format!("http://{at}");
    let args = ["--store", &store, "--node", "web1", "--advertise", &url, "--keys", &keys];
    let mut served = Served::start_at(&at, &args);
    served.wait_until_ready();
    let run = |key: &str, args: &[&str]| {
        let args = [&["workers"][..], args, &["--store", &store]].concat();
        command(&shell, &args).env("FRAZIL_KEY", key).output().unwrap()
    };
    let safe = || run(&admin, &["ls", "--node", "web1"]).status.code();
    assert_eq!(safe(), Some(1), "it holds a worker");
    // A key for IDs does not administer.
    let refused = run(&ids, &["rotate", "web1"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("FORBIDDEN"), "{refused:?}");
    let moved = run(&admin, &["rotate", "web1", "--json"]);
    assert!(moved.status.success(), "{moved:?}");
    let moved: serde_json::Value = serde_json::from_slice(&moved.stdout).unwrap();
    let to = moved["moved"][0]["to"].to_string();
    assert_ne!(moved["moved"][0]["from"].to_string(), to);
    let released = run(&admin, &["release", &to]);
    assert!(released.status.success(), "{released:?}");
    let gone = run(&admin, &["release", &to]);
    assert_eq!(gone.status.code(), Some(1), "{gone:?}");
    let drained = run(&admin, &["drain", "web1"]);
    assert!(drained.status.success(), "{drained:?}");
    assert!(text(&drained.stderr).contains("safe to stop"), "{drained:?}");
    assert_eq!(safe(), Some(0));
    assert_eq!(served.request("GET", "/readyz"), (503, "draining\n".to_owned()));
    assert!(served.stop().success());
}
