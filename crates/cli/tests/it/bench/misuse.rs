//! Runs that cannot be what their user meant: each is told what is wrong and what to do.

use std::process::Command;

use frazil_rig::Certificates;
use serde_json::Value;

use super::false_server::{FalseServer, Habit};
use super::{SHORT, assert_well, report};
use crate::serving::Served;
use crate::shell::Shell;

#[test]
fn a_port_without_tls_is_not_called_untrusted() {
    let (served, shell) = (Served::dev(&[]), Shell::new());
    let certificates = Certificates::generate().unwrap();
    let ca = certificates.ca().to_str().unwrap();
    for (url, plain) in [
        (format!("https://{}", served.http), "http"),
        (format!("grpcs://{}", served.grpc), "grpc"),
        (format!("resps://{}", served.resp), "resp"),
    ] {
        let line = ["bench", &url, "--ca", ca, "--timeout", "3s"];
        let output = shell.output(&[&line[..], &SHORT].concat());
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{url}: {said}");
        assert!(said.contains("does not speak TLS") && said.contains(plain), "{url}: {said}");
        assert!(!said.contains("trust"), "{url}: {said}");
    }
    let server = format!("https://{}", served.http);
    let next = ["next", "--server", &server, "--ca", ca];
    shell.fails(&next, 2, &["does not speak TLS", "http://"]);
}

#[test]
fn connections_beyond_the_limit_of_files_are_refused_and_the_limit_is_raised_if_it_can_be() {
    let (served, shell) = (Served::dev(&[]), Shell::new());
    let url = format!("http://{}", served.http);
    let run = |limit: &str| {
        let script = format!("ulimit {limit} 100 && exec \"$0\" \"$@\"");
        let line = ["bench", &url, "--connections", "120", "--json", "--verify"];
        Command::new("sh")
            .args(["-c", &script, env!("CARGO_BIN_EXE_frazil")])
            .args([&line[..], &SHORT].concat())
            .output()
            .unwrap()
    };
    let refused = run("-n");
    let said = String::from_utf8(refused.stderr).unwrap();
    assert_eq!((refused.status.code(), refused.stdout.as_slice()), (Some(2), &[][..]), "{said}");
    for text in ["120 connections", "may have 100", "`ulimit -n ", "--connections"] {
        assert!(said.contains(text), "{text}: {said}");
    }
    // The control: a soft limit is ours to raise.
    let raised = run("-Sn");
    assert_eq!(raised.status.code(), Some(0), "{raised:?}");
    let report: Value = serde_json::from_slice(&raised.stdout).unwrap();
    assert_well(&report);
    assert_eq!(report["config"]["connections"], 120);
    drop(shell);
}

#[test]
fn flags_that_would_change_nothing_are_refused_by_name() {
    let (served, shell) = (Served::dev(&[]), Shell::new());
    let (http, grpc) = (format!("http://{}", served.http), format!("grpc://{}", served.grpc));
    let certificates = Certificates::generate().unwrap();
    let path = |path: &std::path::Path| path.to_str().unwrap().to_owned();
    let ca = path(certificates.ca());
    let (cert, key) = (path(certificates.server_cert()), path(certificates.server_key()));
    for (args, texts) in [
        (&[&*http, "--ca", &ca][..], &["--ca is for TLS", "https://"][..]),
        (&[&grpc, "--cert", &cert, "--cert-key", &key], &["--cert is for TLS", "grpcs://"]),
        (&["--protocol", "resp", "--ca", &ca], &["--ca is for TLS", "resps://"]),
        (&["--library", "--ca", &ca], &["--ca is for a server"]),
        (&["--library", "--key-file", &ca], &["--key-file is for a server"]),
        (&[&http, "--layout", "discord"], &["--layout says", "leave --layout out"]),
        (&[&http, "--runs"], &["--runs is for gRPC"]),
        (&["--library", "--runs"], &["--library"]),
    ] {
        shell.fails(&[&["bench"][..], args, &SHORT[..2]].concat(), 2, texts);
    }
    // The controls: what comes from the environment is for other commands, and what agrees is fine.
    let line = [&["bench", &http, "--json"][..], &SHORT].concat();
    let mut given = shell.command(&line);
    given.envs([("FRAZIL_CA", &*ca), ("FRAZIL_LAYOUT", "discord")]);
    let output = given.output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_well(&report(&shell, &[&http, "--layout", "frazil", "--verify"]));
}

#[test]
fn runs_that_are_unlike_are_compared_with_warnings() {
    let shell = Shell::new();
    let path = |name: &str| shell.home().join(name).to_str().unwrap().to_owned();
    let made = report(&shell, &[&FalseServer::start(Habit::Honest).url()]);
    std::fs::write(path("a"), made.to_string()).unwrap();
    let warned = |change: &dyn Fn(&mut Value)| {
        let mut other = made.clone();
        change(&mut other);
        std::fs::write(path("b"), other.to_string()).unwrap();
        let output = shell.output(&["bench", "compare", "--json", &path("a"), &path("b")]);
        assert!(output.status.success(), "{output:?}");
        let compared: Value = serde_json::from_slice(&output.stdout).unwrap();
        let unlike = compared["unlike"].as_array().unwrap().clone();
        let fields = unlike.iter().map(|unlike| unlike["field"].as_str().unwrap().to_owned());
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(said.lines().count(), unlike.len(), "{said}");
        (fields.collect::<Vec<_>>(), said)
    };
    for (key, value, field) in [
        ("target", Value::from("https://127.0.0.1:7780"), "protocol"),
        ("request", "gRPC Next".into(), "request"),
        ("batch", 100.into(), "batch"),
        ("scope", "orders".into(), "scope"),
        ("connections", 9.into(), "connections"),
        ("rate", 1000.into(), "rate"),
        ("layout", "other".into(), "layout"),
        ("duration_seconds", 10.0.into(), "duration"),
        ("version", "9".into(), "server's version"),
        ("build", "9 (release)".into(), "build of frazil"),
        ("host", "elsewhere".into(), "host"),
    ] {
        let (fields, said) = warned(&|other| other["config"][key] = value.clone());
        assert_eq!(fields, [field], "{said}");
        let expected = format!("warning: the runs are unlike in {field}: ");
        assert!(said.starts_with(&expected) && said.contains(" in A, "), "{said}");
    }
    // The controls: another server, or a second more, is nothing to warn of.
    assert_eq!(warned(&|_| {}).0, [""; 0]);
    assert_eq!(warned(&|other| other["config"]["target"] = "http://h:1".into()).0, [""; 0]);
    assert_eq!(warned(&|other| other["config"]["duration_seconds"] = 0.4.into()).0, [""; 0]);
    // What was written before these were noted can still be compared.
    let old = |other: &mut Value| {
        let config = other["config"].as_object_mut().unwrap();
        config.retain(|key, _| key != "build" && key != "host");
        other.as_object_mut().unwrap().remove("outage");
    };
    assert_eq!(warned(&old).0, ["build of frazil", "host"]);
}
