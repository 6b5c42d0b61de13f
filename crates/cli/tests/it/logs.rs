//! What a server logs, and what it reads again.

mod leases;

use std::process::{Command, Stdio};
use std::time::Duration;

use crate::desk::Desk;
use crate::logged::Logged;
use frazil_rig::wait_until;
use serde_json::Value;

fn serve(desk: &Desk, args: &[&str]) -> Logged {
    Logged::start(desk.command(&[&["serve", "--dev"][..], args].concat()))
}

/// `2026-11-15T17:31:11.988Z`
fn is_time(text: &str) -> bool {
    let shape = text.chars().map(|c| if c.is_ascii_digit() { '0' } else { c });
    shape.collect::<String>() == "0000-00-00T00:00:00.000Z"
}

#[test]
fn a_line_of_text_has_time_level_target_message_and_fields() {
    let desk = Desk::new();
    let served = serve(&desk, &[]);
    let line = served.wait_for("the node is ready", 1);
    let (time, rest) = line.split_once(' ').unwrap();
    assert!(is_time(time), "{line}");
    assert_eq!(
        rest,
        "INFO frazil_server::monitor: the node is ready state=ready previous=starting"
    );
}

#[test]
fn every_line_is_an_object_with_json_the_last_one_too() {
    let desk = Desk::new();
    let mut served = serve(&desk, &["--log-format", "json"]);
    served.wait_for("ready; try: curl", 1);
    assert_eq!(served.stop().code(), Some(0));
    served.wait_for("the node is stopped", 1);
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let args = ["serve", "--log-format", "json", "--http", &address];
    let failed = desk.output(&[&args[..], &["--grpc", "off", "--resp", "off"]].concat());
    assert_eq!(failed.status.code(), Some(3));
    let failed = String::from_utf8(failed.stderr).unwrap();
    assert!(failed.contains("\"level\":\"ERROR\"") && failed.contains("cannot listen"), "{failed}");
    assert_eq!(served.count("  HTTP"), 0, "the greeting is one event with fields");
    assert_eq!(served.count("\"http\":\"http://127.0.0.1:"), 1);
    for line in served.lines().iter().map(String::as_str).chain(failed.lines()) {
        let object: Value = serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
        assert!(is_time(object["time"].as_str().unwrap()), "{line}");
        assert!(object["message"].is_string() && object["fields"].is_object(), "{line}");
        assert!(object["target"].as_str().unwrap().starts_with("frazil"), "{line}");
    }
}

#[test]
fn an_error_before_the_log_is_an_object_with_json_and_a_line_without() {
    let desk = Desk::with("[log]\nformat = \"json\"\n[limits]\nmax_uri_bytes = 0\n");
    let in_file = desk.output(&["serve", "--dev"]);
    let desk = Desk::new();
    let flag = ["serve", "--dev", "--log-format", "json"];
    let no_file = desk.output(&[&flag[..], &["--config", "/nowhere"]].concat());
    let no_flag = desk.output(&[&flag[..], &["--colour"]].concat());
    for failed in [in_file, no_file, no_flag] {
        assert_eq!(failed.status.code(), Some(2));
        let text = String::from_utf8(failed.stderr).unwrap();
        assert!(text.contains("\"level\":\"ERROR\""), "{text}");
        for line in text.lines() {
            let object: Value =
                serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
            assert!(object["message"].is_string(), "{line}");
        }
    }
    let plain = desk.output(&["serve", "--dev", "--config", "/nowhere"]);
    assert!(String::from_utf8(plain.stderr).unwrap().starts_with("error: "), "the control");
}

#[test]
fn a_signal_changes_the_level_and_names_what_needs_a_restart() {
    let desk = Desk::with("[log]\nlevel = \"warn\"\n");
    let mut served = serve(&desk, &[]);
    served.wait_for("ready; try: curl", 1);
    assert_eq!(served.count("the node is ready"), 0, "that is of level info");
    desk.write("[log]\nlevel = \"info,frazil_coord=debug\"\n[limits]\nmax_count = 5\n");
    served.signal("-HUP");
    let line = served.wait_for("the log level changed", 1);
    assert!(line.contains("state=\"info,frazil_coord=debug\" was=warn"), "{line}");
    let line = served.wait_for("need a restart", 1);
    assert!(line.contains("WARN") && line.ends_with(": limits.max_count"), "{line}");
    desk.write("[log]\nlevel = \"off\"\nfromat = \"json\"\n[lease]\nttl = 5\n");
    served.signal("-HUP");
    served.wait_for("nothing was changed", 2);
    let problems = served.lines();
    for part in [":3:1: log.fromat: there is no such key; did you mean format?", ":5:7: lease.ttl"]
    {
        assert!(problems.iter().any(|line| line.contains(part)), "{part}: {problems:#?}");
    }
    desk.write("[log]\nlevel = \"info,frazil_coord=debug\"\n");
    served.signal("-HUP");
    served.wait_for("the configuration was read again", 1);
    assert_eq!(served.count("need a restart"), 1, "max_count is as it was at the start");
    assert_eq!(served.stop().code(), Some(0));
}

#[test]
fn a_flag_counts_for_more_than_what_is_read_again() {
    let desk = Desk::with("[log]\nlevel = \"warn\"\n");
    let served = serve(&desk, &["--log", "info"]);
    served.wait_for("the node is ready", 1);
    desk.write("[log]\nlevel = \"error\"\n");
    served.signal("-HUP");
    served.wait_for("the configuration was read again", 1);
    assert_eq!(served.count("the log level changed"), 0);
}

#[test]
fn a_text_with_control_characters_breaks_no_line() {
    let evil = "n1\n2026-11-15T17:31:11.988Z ERROR forged: line\r\u{1b}[2J\u{9b}31m";
    for form in ["text", "json"] {
        let desk = Desk::new();
        let store = format!("file:{}/{evil}", desk.home().display());
        let free = ["--http", "127.0.0.1:0", "--grpc", "off", "--resp", "off", "--store", &store];
        let args = [&["serve", "--log-format", form][..], &free].concat();
        let mut served = Logged::start(desk.command(&args));
        served.wait_for("ready; try: curl", 1);
        assert_eq!(served.stop().code(), Some(0));
        served.wait_for("the node is stopped", 1);
        assert_eq!(served.count("ERROR forged"), 1, "{:#?}", served.lines());
        for line in served.lines() {
            assert!(!line.chars().any(char::is_control), "{line:?}");
            assert!(!line.contains(" ERROR forged") || line.contains("n1%0A2026"), "{line:?}");
        }
        for named in ["--scope", "--node", "--region", "--advertise"] {
            let refused = desk.output(&["serve", "--dev", "--log-format", form, named, evil]);
            let said = String::from_utf8(refused.stderr).unwrap();
            assert_eq!((refused.status.code(), said.lines().count()), (Some(2), 1), "{said:?}");
            assert!(!said.trim_end().chars().any(char::is_control), "{said:?}");
        }
    }
}

/// `script` gives the server a terminal of its own; when it is killed, that terminal is gone.
#[test]
fn a_terminal_that_goes_away_ends_the_server_and_one_that_stays_does_not() {
    let desk = Desk::new();
    let id_file = desk.home().join("id");
    let store = format!("file:{}", desk.home().join("store").display());
    let line = format!(
        "echo $$ > {}; exec {} serve --store {store} --http 127.0.0.1:0 --grpc off --resp off \
         --drain-delay 0s",
        id_file.display(),
        env!("CARGO_BIN_EXE_frazil")
    );
    // What the terminal shows is script's stdout; here it takes the place of stderr.
    let mut command = Command::new("sh");
    let script = ["-c", "exec script -qfc \"$1\" /dev/null >&2", "sh", &line];
    command.args(script).env("FRAZIL_STATE_DIR", desk.home()).env("NO_COLOR", "1");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let terminal = Logged::start(command);
    terminal.wait_for("ready; try: curl", 1);
    let id = std::fs::read_to_string(&id_file).unwrap().trim().to_owned();
    assert!(Command::new("kill").args(["-HUP", &id]).status().unwrap().success());
    terminal.wait_for("the configuration was read again", 1);
    terminal.signal("-KILL");
    let process = std::path::PathBuf::from(format!("/proc/{id}"));
    let ended = wait_until("the server to end", Duration::from_secs(30), || {
        // Its parent is gone: who is left to collect it may take its time.
        let state = std::fs::read_to_string(process.join("stat")).unwrap_or_default();
        state.is_empty() || state.contains(") Z ")
    });
    if ended.is_err() {
        let _ = Command::new("kill").args(["-KILL", &id]).status();
    }
    ended.unwrap();
    let workers = desk.data(&["workers", "ls", "--json", "--store", &store]);
    let worker: Value = serde_json::from_str(workers.lines().next().unwrap()).unwrap();
    assert_eq!(worker["state"], "free", "it was released: {workers}");
}
