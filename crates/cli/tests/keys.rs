//! API keys as an operator handles them, with a server that goes by them.

#[path = "config/desk.rs"]
mod desk;
#[path = "logs/logged.rs"]
mod logged;

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;

use desk::Desk;
use logged::Logged;
use serde_json::Value;

fn status(address: &str, key: &str) -> u16 {
    let mut stream = TcpStream::connect(address).unwrap();
    let head = "POST /ids HTTP/1.1\r\nhost: x\r\nconnection: close";
    write!(stream, "{head}\r\nauthorization: Bearer {key}\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.split(' ').nth(1).unwrap().parse().unwrap()
}

fn new(desk: &Desk, file: &str, args: &[&str]) -> String {
    let args = [&["key", "new", "--name", "orders", "--role", "ids"][..], args].concat();
    desk.data(&[&args[..], &["--file", file]].concat()).trim().to_owned()
}

fn list(desk: &Desk, file: &str) -> Vec<Value> {
    let shown = desk.data(&["key", "ls", "--json", "--file", file]);
    shown.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn keys_are_made_listed_replaced_and_revoked_under_a_running_server() {
    let desk = Desk::new();
    let path = desk.home().join("keys.toml");
    let file = path.to_str().unwrap();
    let first = new(&desk, file, &[]);
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(!fs::read_to_string(&path).unwrap().contains(first.rsplit('_').next().unwrap()));
    let mut served = Logged::start(desk.command(&["serve", "--dev", "--keys", file]));
    served.wait_for("ready; try: curl", 1);
    let address = served.wait_for("  HTTP  ", 1).rsplit('/').next().unwrap().to_owned();
    assert_eq!((status(&address, &first), status(&address, "frz_x_y")), (200, 401));
    let id = list(&desk, file)[0]["id"].as_str().unwrap().to_owned();
    let args = ["key", "rotate", &id, "--grace", "1h", "--file", file];
    let second = desk.data(&args).trim().to_owned();
    served.signal("-HUP");
    served.wait_for("keys.toml: 2 keys", 1);
    assert_eq!((status(&address, &first), status(&address, &second)), (200, 200));
    assert!(list(&desk, file)[0]["expires"].is_string());
    desk.data(&["key", "revoke", &id, "--file", file]);
    served.signal("-HUP");
    served.wait_for("keys.toml: 1 keys", 1);
    assert_eq!((status(&address, &first), status(&address, &second)), (401, 200));
    // A file that makes no sense any more changes nothing, and is named with its line.
    fs::write(&path, "[[key]]\nid = 7\n").unwrap();
    served.signal("-HUP");
    let said = served.wait_for("keys.toml", 3);
    assert!(said.contains("keys.toml:2: "), "{said}");
    assert_eq!(status(&address, &second), 200);
    assert!(served.stop().success());
}

#[test]
fn what_people_wrote_into_the_file_stays() {
    let desk = Desk::new();
    let path = desk.home().join("keys.toml");
    fs::write(&path, "# ours\n").unwrap();
    let file = path.to_str().unwrap();
    new(
        &desk,
        file,
        &["--scope", "a,b", "--ids-per-second", "7", "--expires", "2999-01-01T00:00:00Z"],
    );
    new(&desk, file, &[]);
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains("# ours\n") && text.contains("scopes = [\"a\", \"b\"]"), "{text}");
    let all = list(&desk, file);
    assert_eq!((all.len(), &all[0]["ids_per_second"]), (2, &Value::from(7)));
    assert_eq!(all[0]["expires"], "2999-01-01T00:00:00.000Z");
    let table = desk.data(&["key", "ls", "--file", file]);
    assert!(table.contains("orders") && table.contains("a,b"), "{table}");
}

#[test]
fn keys_that_are_made_at_once_are_all_there_and_the_file_stays_what_it_is() {
    let desk = Desk::new();
    let path = desk.home().join("keys.toml");
    fs::write(&path, "").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    let link = desk.home().join("link.toml");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    let file = link.to_str().unwrap();
    std::thread::scope(|scope| {
        let made: Vec<_> = (0..12).map(|_| scope.spawn(|| new(&desk, file, &[]))).collect();
        made.into_iter().for_each(|one| drop(one.join().unwrap()));
    });
    assert_eq!(list(&desk, path.to_str().unwrap()).len(), 12);
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
}

#[test]
fn the_whole_key_names_its_entry_and_is_not_repeated() {
    let desk = Desk::new();
    let path = desk.home().join("keys.toml");
    let file = path.to_str().unwrap();
    let key = new(&desk, file, &[]);
    let secret = key.rsplit('_').next().unwrap();
    let wrong = format!("frz_00000000_{secret}");
    let refused = desk.output(&["key", "revoke", &wrong, "--file", file]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(!String::from_utf8(refused.stderr).unwrap().contains(secret));
    desk.data(&["key", "revoke", &key, "--file", file]);
    assert!(list(&desk, file).is_empty());
}

#[test]
fn a_check_of_the_configuration_looks_into_the_files_it_names() {
    let desk = Desk::new();
    let keys = desk.home().join("keys.toml");
    fs::write(&keys, "[[key]]\nid = 7\n").unwrap();
    let certificates = frazil_rig::Certificates::generate().unwrap();
    let path = |path: &std::path::Path| path.to_str().unwrap().to_owned();
    let (cert, key) = (path(certificates.server_cert()), path(certificates.client_key()));
    let files = ["--keys", keys.to_str().unwrap(), "--tls-cert", &cert, "--tls-key", &key];
    let (code, said) = desk.check(&files);
    assert_eq!(code, Some(1), "{said:?}");
    assert!(said.iter().any(|line| line.contains("keys.toml:2: ")), "{said:?}");
    assert!(said.iter().any(|line| line.contains("do not go together")), "{said:?}");
    assert_eq!(desk.check(&[&files[..], &["--offline"]].concat()).0, Some(0));
}

#[test]
fn nonsense_about_keys_is_told_so_and_changes_nothing() {
    let desk = Desk::new();
    let path = desk.home().join("keys.toml");
    let file = path.to_str().unwrap();
    new(&desk, file, &[]);
    let ending = new(&desk, file, &["--expires", "2999-01-01T00:00:00Z"]);
    let ending = ending.split('_').nth(1).unwrap();
    let before = fs::read_to_string(&path).unwrap();
    let cases: [(&[&str], i32, &str); 8] = [
        (&["key", "rotate", ending], 2, "--expires"),
        (&["key", "new", "--name", "a b", "--role", "ids"], 2, "not a name"),
        (&["key", "new", "--name", "a", "--role", "root"], 2, "possible values"),
        (&["key", "new", "--name", "a"], 2, "--role"),
        (
            &["key", "new", "--name", "a", "--role", "ids", "--expires", "2020-01-01T00:00:00Z"],
            2,
            "opens nothing",
        ),
        (&["key", "revoke", "nobody"], 1, "no key \"nobody\""),
        (&["key", "rotate", "nobody"], 1, "no key \"nobody\""),
        (&["key", "revoke", "x", "--file", "/nowhere/keys.toml"], 2, "cannot be read"),
    ];
    for (args, code, expected) in cases {
        let more: &[&str] = if args.contains(&"--file") { &[] } else { &["--file", file] };
        let output = desk.output(&[args, more].concat());
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{args:?}: {said}");
        assert!(said.contains(expected), "{args:?}: {said}");
    }
    let directory = desk.output(&["key", "ls", "--file", desk.home().to_str().unwrap()]);
    assert!(String::from_utf8(directory.stderr).unwrap().contains("it is a directory"));
    assert_eq!(fs::read_to_string(&path).unwrap(), before);
}

#[test]
fn a_file_that_everybody_can_read_is_warned_of() {
    let desk = Desk::new();
    let path = desk.home().join("keys.toml");
    let file = path.to_str().unwrap();
    new(&desk, file, &[]);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    let served = Logged::start(desk.command(&["serve", "--dev", "--keys", file]));
    let line = served.wait_for("can be read or changed by every user", 1);
    assert!(line.contains("chmod 600"), "{line}");
}
