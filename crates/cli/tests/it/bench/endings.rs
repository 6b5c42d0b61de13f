//! How a measurement ends: by a signal, or with a server that is gone.

use std::process::{Child, Output, Stdio};
use std::time::Duration;

use frazil_rig::{Proxy, wait_until};
use serde_json::Value;

use super::false_server::{FalseServer, HONEST, Habit};
use super::{assert_well, count, float};
use crate::serving::Served;
use crate::shell::Shell;

/// Longer than it takes to end a measurement.
const STALL: Duration = Duration::from_secs(4);

fn start(shell: &Shell, args: &[&str]) -> Child {
    let line = [&["bench", "--json"][..], args].concat();
    shell.command(&line).stdout(Stdio::piped()).spawn().unwrap()
}

fn interrupt(child: Child) -> Output {
    let id = child.id().to_string();
    assert!(std::process::Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    child.wait_with_output().unwrap()
}

fn object(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|why| panic!("{why}: {output:?}"))
}

/// Waits until a server has issued so many IDs over a protocol.
fn wait_for_ids(served: &Served, protocol: &str, least: f64) {
    let label = format!("protocol=\"{protocol}\"");
    wait_until("IDs to be asked for", Duration::from_secs(30), || {
        let (_, metrics) = served.request("GET", "/metrics");
        let mut lines = metrics.lines();
        let line =
            lines.find(|line| line.starts_with("frazil_ids_issued_total") && line.contains(&label));
        line.is_some_and(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap() > least)
    })
    .unwrap();
}

#[test]
fn an_interrupt_ends_it_with_what_was_measured_so_far() {
    let (served, shell) = (Served::dev(&[]), Shell::new());
    let url = format!("http://{}", served.http);
    let child = start(&shell, &[&url, "--duration", "1h", "--warmup", "0s", "--verify"]);
    wait_for_ids(&served, "http", 100.0);
    let output = interrupt(child);
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    let report = object(&output);
    assert_eq!(report["results"]["ended_early"], true);
    assert!(float(&report, "/results/seconds") < 3600.0, "{report}");
    assert_well(&report);
}

#[test]
fn an_interrupt_ends_a_measurement_of_the_library_just_so() {
    let shell = Shell::new();
    for more in [&["--threads", "2"][..], &["--batch", "100", "--clock", "ticker"]] {
        let line = [&["--library", "--duration", "1h", "--verify"][..], more].concat();
        let child = start(&shell, &line);
        wait_until("the signal to be caught", Duration::from_secs(30), || catches(child.id()))
            .unwrap();
        let output = interrupt(child);
        assert_eq!(output.status.code(), Some(130), "{output:?}");
        let report = object(&output);
        assert_eq!(report["results"]["ended_early"], true, "{report}");
        assert!(float(&report, "/results/seconds") < 3600.0, "{report}");
        assert!(count(&report, "/results/ids") > 0, "{report}");
        assert_eq!(report["verify"]["duplicates"], 0, "{report}");
    }
}

#[test]
fn what_is_due_after_an_interrupt_is_not_missed() {
    let (server, shell) = (FalseServer::start(Habit::StallsOnce(STALL)), Shell::new());
    let url = server.url();
    let line = [&url, "--rate", "100", "--connections", "1", "--duration", "1h", "--warmup", "0s"];
    let child = start(&shell, &line);
    let is_stalled = || server.requests() > HONEST;
    wait_until("the server to stall", Duration::from_secs(30), is_stalled).unwrap();
    // The answer to the last request comes long after nobody wants any more.
    let report = object(&interrupt(child));
    let (requests, unsent) =
        (count(&report, "/results/requests"), count(&report, "/schedule/unsent"));
    let seconds = Duration::from_secs_f64(float(&report, "/results/seconds"));
    let due = u64::try_from((seconds + STALL / 2).as_millis() / 10).unwrap();
    assert!(requests > 0 && requests + unsent < due, "{report}");
}

/// Whether a process takes SIGINT itself.
fn catches(id: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
    u64::from_str_radix(caught.trim(), 16).unwrap() & 0b10 != 0
}

#[test]
fn a_server_that_dies_midway_is_told_and_is_exit_code_3() {
    let cases = [
        ("http", &[][..]),
        ("http", &["--rate", "50"]),
        ("grpc", &[]),
        // Its connections are idle when the server goes.
        ("grpc", &["--rate", "50"]),
        ("grpc", &["--stream"]),
        ("resp", &["--pipeline", "4"]),
    ];
    std::thread::scope(|scope| {
        for (protocol, more) in cases {
            scope.spawn(move || dies_midway(protocol, more));
        }
    });
}

fn dies_midway(protocol: &str, more: &[&str]) {
    let (mut served, shell) = (Served::dev(&[]), Shell::new());
    let address = match protocol {
        "http" => &served.http,
        "grpc" => &served.grpc,
        _ => &served.resp,
    };
    let url = format!("{protocol}://{address}");
    let times = ["--duration", "5s", "--warmup", "0s", "--connections", "2"];
    let child = start(&shell, &[&[url.as_str()][..], &times, more].concat());
    wait_for_ids(&served, protocol, 20.0);
    served.signal("-KILL");
    served.wait();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr.clone()).unwrap();
    assert_eq!(output.status.code(), Some(3), "{protocol} {more:?}: {output:?}");
    assert!(said.contains("cannot be reached") && said.contains("outage"), "{said}");
    let report = object(&output);
    assert!(count(&report, "/results/requests") > 0, "{report}");
    assert_eq!(report["outage"]["error"], "cannot connect", "{report}");
    assert!(float(&report, "/outage/since_seconds") < 5.0, "{report}");
}

#[test]
fn a_server_that_only_refuses_in_the_end_is_told_too() {
    let shell = Shell::new();
    let server = FalseServer::start(Habit::RefusesLater);
    let line = [&server.url(), "--duration", "2500ms", "--warmup", "0s"];
    let output = start(&shell, &line).wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    assert_eq!(object(&output)["outage"]["error"], "OVERLOADED");
    assert!(String::from_utf8(output.stderr).unwrap().contains("OVERLOADED"));
}

#[test]
fn connections_that_were_closed_while_idle_are_opened_again() {
    let (served, shell) = (Served::dev(&[]), Shell::new());
    let proxy = Proxy::start(&served.grpc).unwrap();
    let url = format!("grpc://{}", proxy.address());
    let line = [&url, "--rate", "20", "--connections", "2", "--duration", "4s", "--warmup", "0s"];
    let child = start(&shell, &line);
    wait_for_ids(&served, "grpc", 10.0);
    proxy.disconnect();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let report = object(&output);
    // Each connection may have lost a request, and not more than that.
    let errors: u64 =
        report["errors"].as_object().unwrap().values().filter_map(Value::as_u64).sum();
    assert!(errors <= 2 && count(&report, "/results/requests") > 10, "{report}");
}

/// The control: errors that pass are counted, and nothing more.
#[test]
fn a_server_that_fails_now_and_then_is_no_outage() {
    let shell = Shell::new();
    for connections in ["1", "3"] {
        // Of its own: its first requests, which find out what it is, are answered.
        let server = FalseServer::start(Habit::HangsUp);
        let line = [&server.url(), "--duration", "400ms", "--warmup", "0s", "--connections"];
        let output = start(&shell, &[&line[..], &[connections]].concat());
        let output = output.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let report = object(&output);
        assert!(count(&report, "/errors/connection lost") > 0, "{report}");
        assert_eq!(report["outage"], Value::Null, "{report}");
    }
}
