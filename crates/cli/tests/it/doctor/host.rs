//! The machine itself: directories, ports, flags, a server that runs.

use std::fs::{self, Permissions};
use std::io::Read;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;

use super::examination::Examination;
use crate::serving::Served;
use crate::shell::Shell;

#[test]
fn a_fresh_machine_is_well_and_nothing_is_created() {
    let shell = Shell::new();
    let found = Examination::of(&shell, &[]);
    assert_eq!(found.code, Some(0));
    found.ok("directory", "can be created");
    found.ok("login", "on this machine");
    found.ok("store", "file:");
    found.ok("namespace", "\"default\" is not there yet");
    found.ok("http", "a free port of 127.0.0.1");
    for port in ["grpc", "resp"] {
        found.skipped(port, "off");
    }
    assert_eq!(Examination::of(&shell, &["--worker", "3"]).code, Some(0));
    assert_eq!(fs::read_dir(shell.home()).unwrap().count(), 0, "something was created");
}

#[test]
fn a_directory_that_others_can_write_is_warned_of_and_one_that_is_none_fails() {
    let shell = Shell::new();
    let directory = shell.home().join("shared");
    fs::create_dir(&directory).unwrap();
    fs::set_permissions(&directory, Permissions::from_mode(0o777)).unwrap();
    let store = format!("file:{}", directory.display());
    let found = Examination::of(&shell, &["--store", &store]);
    let fix = format!("chmod 700 {}", directory.display());
    found.warn("directory", "others than its owner can write", &fix);
    assert_eq!(found.code, Some(0));
    let found = Examination::of(&shell, &["--store", "file:/dev/null/store"]);
    found.fail("directory", "cannot be written", "--store file:DIRECTORY");
    assert_eq!(found.code, Some(1));
}

#[test]
fn another_layout_other_workers_and_a_longer_budget_are_told_with_the_right_flag() {
    let shell = Shell::new();
    shell.data(&["store", "init", "--layout", "twitter", "--workers", "0-99"]);
    let found = Examination::of(&shell, &[]);
    found.fail("namespace", "another layout", "--layout 'time:41");
    assert_eq!(found.code, Some(1));
    let layout = ["--layout", "twitter"];
    let found = Examination::of(&shell, &[&layout[..], &["--workers", "0-9"]].concat());
    found.fail("namespace", "workers 0 to 99, not 0 to 9", "--workers 0-99");
    let found = Examination::of(&shell, &[&layout[..], &["--outage-budget", "20m"]].concat());
    found.warn("namespace", "an outage budget of 20m", "--outage-budget 600s");
    let found = Examination::of(&shell, &layout);
    found.ok("namespace", "workers 0 to 99");
    assert_eq!(found.code, Some(0));
}

#[test]
fn a_second_namespace_with_the_same_ids_is_warned_of() {
    let shell = Shell::new();
    shell.data(&["store", "init", "--workers", "0-99"]);
    shell.data(&["store", "init", "--namespace", "apart", "--workers", "100-199"]);
    shell.data(&["store", "init", "--namespace", "unlike", "--layout", "twitter"]);
    let rows = |found: &Examination| found.of_check("namespace").count();
    assert_eq!(rows(&Examination::of(&shell, &[])), 1);
    shell.data(&["store", "init", "--namespace", "second", "--workers", "99-120"]);
    let found = Examination::of(&shell, &[]);
    found.warn("namespace", "\"second\" of the same store", "use only one of the two");
    assert_eq!((rows(&found), found.code), (2, Some(0)));
}

#[test]
fn a_pool_that_is_half_full_is_warned_of_and_a_full_one_fails() {
    let shell = Shell::new();
    shell.data(&["store", "init", "--workers", "3-5"]);
    let mut holders = Vec::new();
    for (status, what) in [("warn", "more than half is in use"), ("fail", "no worker is free")] {
        while holders.len() < if status == "warn" { 2 } else { 3 } {
            let mut holder = shell.command(&["next", "-n", "10000000000"]).spawn().unwrap();
            holder.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
            holders.push(holder);
        }
        let found = Examination::of(&shell, &[]);
        match status {
            "warn" => found.warn("pool", what, "stop nodes"),
            _ => found.fail("pool", what, "stop nodes"),
        }
        found.has_holder(holders[0].id());
        assert_eq!(found.code, Some(i32::from(status == "fail")));
    }
    for mut holder in holders {
        holder.kill().unwrap();
        holder.wait().unwrap();
    }
}

#[test]
fn a_quarantine_is_told_with_its_end() {
    let shell = Shell::new();
    shell.data(&["store", "init"]);
    shell.data(&["store", "quarantine", "--for", "5m"]);
    let found = Examination::of(&shell, &[]);
    found.fail("pool", "in quarantine until 20", "wait until then");
    assert_eq!(found.code, Some(1));
}

#[test]
fn a_port_in_use_fails_with_who_uses_it_unless_it_is_a_frazil_server() {
    let shell = Shell::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let served = Served::dev(&["--node", "n7"]);
    let found = Examination::exactly(
        &shell,
        &["--http", &served.http, "--grpc", &served.grpc, "--resp", &address],
    );
    found.ok("http", "node n7");
    found.ok("grpc", "a frazil server, process");
    let who = format!("process {}", std::process::id());
    found.fail("resp", &who, "--resp with another port");
    assert_eq!(found.named("fail"), ["resp"]);
    drop(taken);
    let found = Examination::exactly(
        &shell,
        &["--http", "127.0.0.1:0", "--grpc", &address, "--resp", &address],
    );
    found.ok("grpc", "is free");
    found.fail("configuration", "is taken by listen.grpc", "correct --resp");
    found.skipped("resp", "for grpc too");
}

#[test]
fn a_server_that_runs_is_examined_too() {
    let shell = Shell::new();
    let served = Served::dev(&[]);
    let url = format!("http://{}", served.http);
    let found = Examination::of(&shell, &["--server", &url]);
    found.ok("server", "is ready: [+] lane");
    assert_eq!(found.code, Some(0));
    let found = Examination::of(&shell, &["--server", "http://127.0.0.1:1"]);
    found.fail("server", "does not answer", "frazil serve");
    let found = Examination::of(&shell, &["--server", "127.0.0.1:1"]);
    found.fail("server", "write the server as http://HOST:PORT", "correct --server");
}

#[test]
fn what_makes_no_sense_fails_with_the_flag_that_mends_it_and_the_rest_is_examined() {
    let shell = Shell::new();
    for (args, fix) in [
        (&["--heartbeat", "20s"][..], "--heartbeat 10s, or --ttl 1m"),
        (&["--ttl", "500ms"], "--ttl 30s"),
        (&["--outage-budget", "30s"], "--outage-budget 90s"),
        (&["--workers", "0-9999"], "--workers 0-1023"),
        (&["--store", "redis://127.0.0.1:1?timeout=10s"], "?timeout=5s in the URL"),
        (
            &["--store", "redis://127.0.0.1:1?timeout=4s", "--ttl", "12s", "--heartbeat", "4s"],
            "?timeout=3s in the URL, or --ttl 16s",
        ),
    ] {
        let found = Examination::of(&shell, args);
        found.fail("configuration", "", fix);
        found.skipped("timing", "see configuration");
        found.ok("lifetime", "years from now");
        assert_eq!(found.code, Some(1), "{args:?}");
    }
    let found = Examination::of(&shell, &["--store", "mysql://x"]);
    found.fail("configuration", "no store is called \"mysql\"", "correct --store");
    found.skipped("store", "see configuration");
    found.skipped("pool", "no store to look at");
    assert_eq!(found.named("fail"), ["configuration"]);
}

#[test]
fn people_read_a_word_a_name_what_was_found_and_the_fix() {
    let shell = Shell::new();
    let args =
        ["doctor", "--heartbeat", "20s", "--http", "127.0.0.1:0", "--grpc", "off", "--resp", "off"];
    let output = shell.output(&args);
    let text = str::from_utf8(&output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1));
    let mut lines = text.lines().skip_while(|line| !line.starts_with("fail  configuration "));
    assert!(lines.next().unwrap().contains("more than a third of the TTL"), "{text}");
    assert!(lines.next().unwrap().trim_start().starts_with("fix: --heartbeat 10s"), "{text}");
    assert!(text.contains("ok    lifetime "), "{text}");
    assert!(text.contains("      grpc           skipped: off"), "{text}");
    assert!(str::from_utf8(&output.stderr).unwrap().starts_with("1 failure, "), "{output:?}");
}
