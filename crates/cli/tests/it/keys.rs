//! API keys as an operator handles them, with a server that goes by them.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::desk::Desk;
use crate::logged::Logged;
use serde_json::Value;

fn status(address: &str, key: &str) -> u16 {
    let mut stream = TcpStream::connect(address).unwrap();
    let head = "POST /ids HTTP/1.1\r\nhost: x\r\nconnection: close";
    write!(stream, "{head}\r\nauthorization: Bearer {key}\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.split(' ').nth(1).unwrap().parse().unwrap()
}

/// A key with a name of its own.
fn new(desk: &Desk, file: &str, args: &[&str]) -> String {
    static MADE: AtomicU32 = AtomicU32::new(0);
    let name = format!("orders-{}", MADE.fetch_add(1, Ordering::Relaxed));
    let args = [&["key", "new", "--name", &name, "--role", "ids"][..], args].concat();
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
fn a_certificate_goes_over_to_the_key_that_replaces_its_own() {
    let desk = Desk::new();
    let path = desk.home().join("keys.toml");
    let file = path.to_str().unwrap();
    new(&desk, file, &[]);
    let id = list(&desk, file)[0]["id"].as_str().unwrap().to_owned();
    let text = fs::read_to_string(&path).unwrap();
    let certified = "[[key]]\nid = \"bare\"\nname = \"bare\"\nroles = [\"ids\"]\n\
                     certificate_san = \"bare.example\"\n";
    fs::write(&path, format!("{text}certificate_subject = \"CN=orders\"\n{certified}")).unwrap();
    desk.data(&["key", "rotate", &id, "--grace", "1h", "--file", file]);
    let all = list(&desk, file);
    let text = fs::read_to_string(&path).unwrap();
    assert_eq!((all.len(), text.matches("CN=orders").count()), (3, 1), "{text}");
    assert!(text.rfind("CN=orders") > text.find("bare.example"), "{text}");
    let refused = desk.output(&["key", "rotate", "bare", "--file", file]);
    let said = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(2), "{said}");
    assert!(said.contains("no text to replace"), "{said}");
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
}

#[test]
fn a_key_can_be_made_for_a_certificate_and_servers_say_if_they_ask_for_none() {
    let desk = Desk::new();
    let path = desk.home().join("keys.toml");
    let file = path.to_str().unwrap();
    new(&desk, file, &[]);
    let warning = "keys name certificates, and no client is asked for one";
    let mut served = Logged::start(desk.command(&["serve", "--dev", "--keys", file]));
    served.wait_for("ready; try: curl", 1);
    assert_eq!(served.count(warning), 0);
    let subject = ["--certificate-subject", "CN=orders,O=Example"];
    assert_eq!(new(&desk, file, &subject), "", "there is no text to print");
    let both = ["--certificate-san", "spiffe://example.net/orders", "--with-text"];
    let text = new(&desk, file, &both);
    assert!(text.starts_with("frz_"), "{text}");
    let all = list(&desk, file);
    assert_eq!(
        (&all[1]["certificate_subject"], &all[1]["sha256"]),
        (&subject[1].into(), &Value::Null)
    );
    assert_eq!(all[2]["certificate_san"], both[1]);
    assert!(all[2]["sha256"].is_string());
    let table = desk.data(&["key", "ls", "--file", file]);
    assert!(table.contains(subject[1]) && table.contains(both[1]), "{table}");
    served.signal("-HUP");
    served.wait_for("keys.toml: 3 keys", 1);
    served.wait_for(warning, 1);
    assert!(served.stop().success());
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
    new(&desk, file, &["--certificate-san", "a.example"]);
    let before = fs::read_to_string(&path).unwrap();
    let cases: [(&[&str], i32, &str); 11] = [
        (
            &["key", "new", "--name", "a", "--role", "ids", "--certificate-subject", "orders"],
            2,
            "no subject of a certificate",
        ),
        (
            &["key", "new", "--name", "a", "--role", "ids", "--certificate-san", "A.Example"],
            2,
            "the certificate stands for another key too",
        ),
        (&["key", "new", "--name", "a", "--role", "ids", "--with-text"], 2, "--certificate-s"),
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
fn a_name_that_another_key_has_is_refused() {
    let desk = Desk::new();
    let path = desk.home().join("keys.toml");
    let file = path.to_str().unwrap();
    let new = || desk.output(&["key", "new", "--name", "app", "--role", "ids", "--keys", file]);
    let first = String::from_utf8(new().stdout).unwrap();
    let refused = || {
        let before = fs::read_to_string(&path).unwrap();
        let output = new();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("another key of the name app") && said.contains("rotate"), "{said}");
        assert!(output.stdout.is_empty());
        assert_eq!(fs::read_to_string(&path).unwrap(), before);
    };
    refused();
    desk.data(&["key", "rotate", first.trim(), "--keys", file]);
    assert_eq!(list(&desk, file).len(), 2);
    refused();
    let text = fs::read_to_string(&path).unwrap();
    let twice: String = text
        .lines()
        .filter(|line| !line.starts_with("expires"))
        .map(|line| format!("{line}\n"))
        .collect();
    fs::write(&path, twice).unwrap();
    let output = desk.output(&["serve", "--dev", "--keys", file]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && said.contains("another key of the name app"), "{said}");
}

#[test]
fn a_full_disk_leaves_the_file_as_it_was() {
    let desk = Desk::new();
    let disk = frazil_rig::full_disk(1 << 20).unwrap();
    let path = disk.path().join("keys.toml");
    let file = path.to_str().unwrap();
    let first = new(&desk, file, &[]);
    // The text is nearly as long as its pages, so that a longer one needs another.
    while fs::metadata(&path).unwrap().len() % 4096 < 3900 {
        new(&desk, file, &[]);
    }
    let before = fs::read(&path).unwrap();
    disk.fill().unwrap();
    let count = || fs::read_dir(disk.path()).unwrap().count();
    let files = count();
    for args in [&["key", "rotate", &first][..], &["key", "new", "--name", "a", "--role", "ids"]] {
        let output = desk.output(&[args, &["--keys", file]].concat());
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(3), "{said}");
        assert!(said.contains("is what it was") && output.stdout.is_empty(), "{said}");
        assert_eq!((fs::read(&path).unwrap() == before, count()), (true, files), "{args:?}");
    }
}

#[test]
fn whose_the_file_is_and_who_may_read_it_stays() {
    use std::os::unix::fs::{MetadataExt, chown};
    let desk = Desk::new();
    let path = desk.home().join("keys.toml");
    let file = path.to_str().unwrap();
    let key = new(&desk, file, &[]);
    chown(&path, Some(4242), Some(4243)).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o440)).unwrap();
    desk.data(&["key", "revoke", &key, "--keys", file]);
    let about = fs::metadata(&path).unwrap();
    assert_eq!((about.uid(), about.gid(), about.mode() & 0o7777), (4242, 4243, 0o440));
    assert!(list(&desk, file).is_empty());
}

#[test]
fn nobody_administers_from_elsewhere_without_a_key() {
    let desk = Desk::new();
    let admin = ["--admin", "0.0.0.0:0", "--insecure"];
    let output = desk.output(&[&["serve", "--dev"][..], &admin].concat());
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("frazil key new --name ops --role admin"), "{said}");
    let (code, said) = desk.check(&admin);
    assert!(code == Some(1) && said.iter().any(|line| line.contains("frazil key new")), "{said:?}");
    let file = desk.home().join("keys.toml");
    let file = file.to_str().unwrap();
    new(&desk, file, &[]);
    let args = [&["serve", "--dev", "--keys", file][..], &admin].concat();
    Logged::start(desk.command(&args)).wait_for("ready; try: curl", 1);
}

#[test]
fn a_file_that_its_group_can_change_is_warned_of_and_so_is_the_key_for_other_nodes() {
    let desk = Desk::new();
    let keys = desk.home().join("keys.toml");
    let file = keys.to_str().unwrap();
    let peer = desk.home().join("peer.key");
    fs::write(&peer, new(&desk, file, &[])).unwrap();
    fs::set_permissions(&keys, fs::Permissions::from_mode(0o660)).unwrap();
    fs::set_permissions(&peer, fs::Permissions::from_mode(0o604)).unwrap();
    let args = ["serve", "--dev", "--keys", file, "--peer-key-file", peer.to_str().unwrap()];
    let served = Logged::start(desk.command(&args));
    let line = served.wait_for("keys.toml can be changed by its group", 1);
    assert!(line.contains("chmod 600"), "{line}");
    served.wait_for("peer.key can be read or changed by every user", 1);
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
