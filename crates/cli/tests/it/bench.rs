//! `frazil bench` against real servers, and against false ones that it must see through.

mod endings;
mod false_server;
mod misuse;

use std::process::Stdio;
use std::time::Duration;

use crate::serving::Served;
use crate::shell::Shell;
use false_server::{FalseServer, Habit};
use frazil_rig::Certificates;
use serde_json::Value;

/// Long enough for some requests, short enough to have many tests.
const SHORT: [&str; 4] = ["--duration", "300ms", "--warmup", "50ms"];

/// A short run that must succeed.
fn report(shell: &Shell, args: &[&str]) -> Value {
    let short = if args.contains(&"--warmup") { &SHORT[..2] } else { &SHORT };
    shell.json_lines(&[&["bench", "--json"][..], args, short].concat()).remove(0)
}

fn count(report: &Value, pointer: &str) -> u64 {
    report.pointer(pointer).and_then(Value::as_u64).unwrap_or_else(|| panic!("{pointer}: {report}"))
}

fn float(report: &Value, pointer: &str) -> f64 {
    report.pointer(pointer).and_then(Value::as_f64).unwrap_or_else(|| panic!("{pointer}: {report}"))
}

/// What must be true of every run that was verified and well.
fn assert_well(report: &Value) {
    let ids = count(report, "/results/ids");
    assert!(ids > 0 && report["errors"].as_object().unwrap().is_empty(), "{report}");
    // The warm-up and the first look are verified and not counted.
    assert!(count(report, "/verify/ids") >= ids, "{report}");
    for fault in ["duplicates", "out_of_order", "wrong_answers"] {
        assert_eq!(report["verify"][fault], 0, "{report}");
    }
    let of = |name: &str| float(report, &format!("/latency_us/{name}"));
    let rising = [of("p50"), of("p90"), of("p99"), of("p99_9"), of("max")];
    assert!(of("p50") > 0.0 && rising.is_sorted(), "{report}");
}

#[test]
fn every_protocol_and_form_is_measured_and_verified() {
    let (served, shell) = (Served::dev(&["--scope", "orders"]), Shell::new());
    let (http, grpc) = (format!("http://{}", served.http), format!("grpc://{}", served.grpc));
    let (resp, redis) = (format!("resp://{}", served.resp), format!("redis://{}", served.resp));
    for (args, batch) in [
        (&[http.as_str()][..], 1),
        (&[&http, "--accept", "json", "--batch", "7"], 7),
        (&[&http, "--accept", "text", "--batch", "5000", "--connections", "2"], 5000),
        (&[&http, "--scope", "orders", "--batch", "100"], 100),
        (&[&grpc], 1),
        (&[&grpc, "--batch", "5000"], 5000),
        (&[&grpc, "--runs"], 1),
        (&[&grpc, "--batch", "5000", "--runs"], 5000),
        (&[&grpc, "--stream", "--batch", "1000", "--pipeline", "3", "--scope", "orders"], 1000),
        (&[&grpc, "--stream", "--batch", "1000", "--runs"], 1000),
        (&[&resp, "--batch", "2", "--scope", "orders"], 2),
        (&[&redis, "--pipeline", "16", "--protocol", "resp"], 1),
    ] {
        let report = report(&shell, &[args, &["--verify"]].concat());
        assert_well(&report);
        let requests = count(&report, "/results/requests");
        assert_eq!(count(&report, "/results/ids"), requests * batch, "{args:?}: {report}");
        assert_eq!(report["config"]["batch"], batch, "{report}");
    }
}

#[test]
fn the_default_is_the_local_node_of_the_protocol() {
    let shell = Shell::new();
    for (args, url) in [
        (&["bench"][..], "http://127.0.0.1:7780"),
        (&["bench", "--protocol", "grpc"], "grpc://127.0.0.1:7781"),
        (&["bench", "--protocol", "resp"], "resp://127.0.0.1:7782"),
    ] {
        // Whether somebody runs a node there or not, this is where it is looked for.
        let output = shell.output(&[args, &SHORT].concat());
        let said = [output.stdout, output.stderr].concat();
        assert!(String::from_utf8(said).unwrap().contains(url), "{args:?}");
    }
}

#[test]
fn the_result_is_a_few_lines_and_nothing_else_on_a_pipe() {
    let (served, shell) = (Served::dev(&[]), Shell::new());
    let url = format!("grpc://{}", served.grpc);
    let output = shell.output(&[&["bench", &url, "--verify"][..], &SHORT].concat());
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]), "{text}");
    for part in [" IDs/s", "p50 ", "p99.9 ", "errors     none", "no duplicates, order holds: "] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(text.contains(" IDs checked\n") && text.contains("server     unknown"), "{text}");
}

#[test]
fn a_terminal_is_drawn_on_and_the_data_has_nothing_of_it() {
    let (served, shell) = (Served::dev(&[]), Shell::new());
    let data = shell.home().join("data");
    let frazil = env!("CARGO_BIN_EXE_frazil");
    let url = format!("http://{}", served.http);
    let run =
        format!("'{frazil}' bench {url} --duration 1500ms --warmup 0s > '{}'", data.display());
    let mut script = std::process::Command::new("script");
    let drawn = script.args(["-qec", &run, "/dev/null"]).stdin(Stdio::null()).output().unwrap();
    let (drawn, data) = (drawn.stdout, std::fs::read(data).unwrap());
    assert!(drawn.starts_with(b"\x1b[?1049h") && drawn.ends_with(b"\x1b[?25h"), "{drawn:?}");
    let drawn = String::from_utf8_lossy(&drawn);
    assert!(drawn.contains("Ctrl-C") && drawn.contains("last"), "{drawn:?}");
    assert!(data.starts_with(b"target ") && !data.contains(&b'\x1b'), "{data:?}");
}

#[test]
fn requests_at_a_rate_are_sent_when_they_are_due() {
    let (served, shell) = (Served::dev(&[]), Shell::new());
    let url = format!("http://{}", served.http);
    let report = report(&shell, &[&url, "--rate", "100", "--connections", "4", "--verify"]);
    assert_well(&report);
    // 30 are due in 300 ms, sent or not: never more, however fast the server is.
    let requests = count(&report, "/results/requests");
    assert_eq!(requests + count(&report, "/schedule/unsent"), 30, "{report}");
    assert_eq!(report["schedule"]["requests_per_second"], 100);
    assert!(float(&report, "/schedule/behind_max_ms") >= 0.0);
}

#[test]
fn a_stall_shows_in_what_would_have_been_asked_meanwhile() {
    let stalls = || FalseServer::start(Habit::StallsOnce(Duration::from_millis(500)));
    let shell = Shell::new();
    let common = ["--connections", "1", "--duration", "2s", "--warmup", "0s", "--json"];
    let run = |server: &FalseServer, more: &[&str]| {
        let url = server.url();
        shell.json_lines(&[&["bench", &url][..], more, &common].concat()).remove(0)
    };
    let paced = run(&stalls(), &["--rate", "200"]);
    assert!(float(&paced, "/latency_us/max") >= 490_000.0, "{paced}");
    assert!(float(&paced, "/latency_us/p99") >= 250_000.0, "{paced}");
    assert!(float(&paced, "/schedule/behind_max_ms") >= 400.0, "{paced}");
    // A hundred were due while it stalled, and all of them waited.
    assert!(float(&paced, "/latency_us/p90") >= 100_000.0, "{paced}");
    // The control: who waits for each answer asks nothing meanwhile, and sees one slow request.
    let closed = run(&stalls(), &[]);
    assert!(float(&closed, "/latency_us/max") >= 490_000.0, "{closed}");
    assert!(
        float(&closed, "/latency_us/p90") < float(&closed, "/latency_us/max") / 2.0,
        "{closed}"
    );
}

#[test]
fn what_was_due_and_never_sent_waited_until_the_end() {
    let server = FalseServer::start(Habit::StallsOnce(Duration::from_secs(3)));
    let shell = Shell::new();
    let line = ["bench", &server.url(), "--rate", "100", "--connections", "1", "--duration", "1s"];
    let more = ["--warmup", "0s", "--timeout", "10s", "--json"];
    let report = shell.json_lines(&[&line[..], &more].concat()).remove(0);
    // One of the first requests takes longer than everything, so the others are never sent.
    let (requests, unsent) =
        (count(&report, "/results/requests"), count(&report, "/schedule/unsent"));
    assert!(requests <= 10 && requests + unsent == 100, "{report}");
    // They were due evenly over the second, so half of them waited for more than 0.4 s of it: the
    // few that were answered at once do not make a fast server.
    assert!(float(&report, "/latency_us/p50") >= 400_000.0, "{report}");
    assert!(float(&report, "/latency_us/p90") >= 700_000.0, "{report}");
}

#[test]
fn answers_in_chunks_are_read() {
    let shell = Shell::new();
    let server = FalseServer::start(Habit::Chunks);
    for batch in ["1", "10", "1000"] {
        assert_well(&report(&shell, &[&server.url(), "--batch", batch, "--verify"]));
    }
}

#[test]
fn whether_a_scope_is_strict_is_asked_over_http() {
    let shell = Shell::new();
    let served = Served::dev(&["--scope", "orders=strict", "--scope", "plain"]);
    let (http, grpc) = (format!("http://{}", served.http), format!("grpc://{}", served.grpc));
    let resp = format!("resp://{}", served.resp);
    for (args, is_strict, is_noted) in [
        (&[&*http, "--scope", "orders"][..], true, false),
        (&[&grpc, "--scope", "orders", "--metrics", &http], true, false),
        (&[&resp, "--scope", "orders", "--metrics", &http], true, false),
        (&[&grpc, "--scope", "plain", "--metrics", &http], false, false),
        (&[&grpc, "--scope", "orders"], false, true),
        (&[&grpc], false, false),
    ] {
        let line = [&["bench", "--json", "--verify"][..], args, &SHORT].concat();
        let output = shell.output(&line);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(0), "{args:?}: {said}");
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_well(&report);
        assert_eq!(report["verify"]["is_strict"], is_strict, "{args:?}: {report}");
        assert_eq!(
            said.contains("is strict is told over HTTP alone"),
            is_noted,
            "{args:?}: {said}"
        );
    }
}

#[test]
fn a_server_that_does_wrong_is_found_out() {
    let shell = Shell::new();
    for (habit, kind, finding) in [
        (Habit::Repeats, "duplicates", "had come before"),
        (Habit::GoesBack, "out_of_order", "was followed by"),
        (Habit::Miscounts, "wrong_answers", "an answer has 11 IDs instead of 10"),
        (Habit::MixesWorkers, "wrong_answers", "is in an answer of worker"),
        (Habit::LeavesLayout, "wrong_answers", "is not an ID of the layout"),
    ] {
        let server = FalseServer::start(habit);
        let url = server.url();
        let line = [&["bench", &url, "--batch", "10", "--verify", "--json"][..], &SHORT].concat();
        let output = shell.output(&line);
        assert_eq!(output.status.code(), Some(1), "{habit:?}: {output:?}");
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert!(count(&report, &format!("/verify/{kind}")) > 0, "{habit:?}: {report}");
        let findings = report["verify"]["findings"].as_array().unwrap();
        let is_told = findings.iter().any(|found| found.as_str().unwrap().contains(finding));
        assert!(is_told, "{habit:?}: {report}");
        assert!(String::from_utf8(output.stderr).unwrap().contains("see the findings"));
    }
    // The control: one that does right is not suspected.
    let server = FalseServer::start(Habit::Honest);
    assert_well(&report(&shell, &[&server.url(), "--batch", "10", "--verify"]));
}

#[test]
fn what_it_refuses_later_is_counted_by_reason_and_no_success_is_exit_code_3() {
    let shell = Shell::new();
    let server = FalseServer::start(Habit::Refuses);
    let output = shell.output(&[&["bench", &server.url(), "--json"][..], &SHORT].concat());
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(count(&report, "/errors/OVERLOADED") > 0, "{report}");
    assert_eq!((&report["results"]["requests"], &report["latency_us"]), (&0.into(), &Value::Null));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("OVERLOADED") && said.contains("frazil doctor"), "{said}");
}

#[test]
fn answers_that_do_not_come_are_counted_as_that() {
    let shell = Shell::new();
    let stalls = FalseServer::start(Habit::StallsOnce(Duration::from_mins(1)));
    let url = stalls.url();
    let late = report(&shell, &[&url, "--timeout", "2s", "--connections", "1", "--warmup", "0s"]);
    assert!(count(&late, "/errors/timed out") > 0, "{late}");
    let closes = FalseServer::start(Habit::HangsUp);
    let report = report(&shell, &[&closes.url(), "--connections", "2"]);
    assert!(count(&report, "/errors/connection lost") > 0, "{report}");
    assert!(count(&report, "/results/requests") > 0, "it connects again: {report}");
}

#[test]
fn what_the_server_uses_is_read_where_it_can_be() {
    let (served, shell) = (Served::dev(&[]), Shell::new());
    let (http, resp) = (format!("http://{}", served.http), format!("resp://{}", served.resp));
    let pid = served.id().to_string();
    for (args, source) in [
        (&[http.as_str()][..], "metrics"),
        (&[&resp, "--metrics", &http], "metrics"),
        (&[&resp, "--pid", &pid], "pid"),
    ] {
        let report = report(&shell, args);
        assert_eq!(report["target"]["source"], source, "{report}");
        let of = |name: &str| count(&report, &format!("/target/{name}"));
        assert!(of("rss_start_bytes") > 1 << 20, "{report}");
        assert!(of("rss_peak_bytes") >= of("rss_end_bytes"), "{report}");
        assert!(float(&report, "/target/cores") >= 0.0, "{report}");
    }
    assert_eq!(report(&shell, &[&resp])["target"], Value::Null);
}

#[test]
fn keys_and_certificates_open_every_protocol() {
    let shell = Shell::new();
    let certificates = Certificates::generate().unwrap();
    let path = |path: &std::path::Path| path.to_str().unwrap().to_owned();
    let (cert, own) = (path(certificates.server_cert()), path(certificates.server_key()));
    let ca = path(certificates.ca());
    let keys = path(&shell.home().join("keys.toml"));
    let key = shell.data(&["key", "new", "--name", "load", "--role", "ids", "--file", &keys]);
    let file = path(&shell.home().join("load.key"));
    std::fs::write(&file, key).unwrap();
    let files = ["--keys", &keys, "--tls-cert", &cert, "--tls-key", &own];
    let mut served = Served::start(&[&["--store", "memory:"][..], &files].concat());
    served.line_with("the node is ready");
    let urls = [
        format!("https://localhost:{}", port(&served.http)),
        format!("grpcs://localhost:{}", port(&served.grpc)),
        format!("rediss://localhost:{}", port(&served.resp)),
    ];
    for url in &urls {
        let report = report(&shell, &[url, "--ca", &ca, "--key-file", &file, "--verify"]);
        assert_well(&report);
        let line = [&["bench", url, "--ca", &ca][..], &SHORT].concat();
        shell.fails(&line, 2, &["UNAUTHENTICATED", "--key-file"]);
        let line = [&["bench", url, "--key-file", &file, "--ca", &file][..], &SHORT].concat();
        shell.fails(&line, 2, &["no certificate"]);
    }
    let plain = format!("http://localhost:{}", port(&served.http));
    shell.fails(&["bench", &plain, "--key-file", &file], 3, &["TLS"]);
}

fn port(address: &str) -> &str {
    address.rsplit(':').next().unwrap()
}

#[test]
fn runs_are_compared_by_the_rates_of_their_seconds() {
    let shell = Shell::new();
    let path = |name: &str| shell.home().join(name).to_str().unwrap().to_owned();
    let made = report(&shell, &[&FalseServer::start(Habit::Honest).url()]);
    let with_rates = |name: &str, rates: &[f64]| {
        let mut made = made.clone();
        let sample = made["samples"][0].clone();
        let samples = rates.iter().map(|rate| {
            let mut sample = sample.clone();
            sample["ids_per_second"] = (*rate).into();
            sample
        });
        made["samples"] = samples.collect();
        std::fs::write(path(name), made.to_string()).unwrap();
        path(name)
    };
    let slow = with_rates("slow", &[100.0, 101.0, 102.0, 103.0, 500.0]);
    let fast = with_rates("fast", &[100.0, 201.0, 202.0, 203.0, 204.0]);
    let short = with_rates("short", &[1.0, 2.0, 3.0]);
    for (one, other, verdict) in [
        (&slow, &fast, "faster"),
        (&fast, &slow, "slower"),
        (&slow, &slow, "no_significant_difference"),
        (&slow, &short, "too_few_seconds"),
    ] {
        let compared = &shell.json_lines(&["bench", "compare", "--json", one, other])[0];
        assert_eq!(compared["verdict"], verdict, "{compared}");
        assert_eq!(compared["metrics"][0]["ratio"], 1.0, "{compared}");
    }
    let table = shell.data(&["bench", "compare", &slow, &fast]);
    for text in ["B/A", "IDs/s", "latency p99", "1.00", "B is faster"] {
        assert!(table.contains(text), "{text}: {table}");
    }
    std::fs::write(path("other"), "{}").unwrap();
    shell.fails(&["bench", "compare", &slow, &path("other")], 2, &["no measurement"]);
    shell.fails(&["bench", "compare", &slow, &path("none")], 2, &["cannot be read"]);
}

#[test]
fn what_cannot_be_measured_is_told_with_what_to_do() {
    let (served, shell) = (Served::dev(&[]), Shell::new());
    let (http, grpc) = (format!("http://{}", served.http), format!("grpc://{}", served.grpc));
    let resp = format!("resp://{}", served.resp);
    let crossed = format!("resp://{}", served.http);
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let nobody = format!("http://{free}");
    for (args, code, text) in [
        (&["ftp://h"][..], 2, "http://HOST:PORT"),
        (&["http://u:hunter2@h"], 2, "no password"),
        (&["http://h:99999"], 2, "1 to 65535"),
        (&[&http, "--protocol", "grpc"], 2, "leave one of them out"),
        (&[&http, "--connections", "0"], 2, "0 is not in 1"),
        (&[&http, "--batch", "0"], 2, "0 is not in 1"),
        (&[&http, "--rate", "0"], 2, "0 is not in 1"),
        (&[&http, "--library"], 2, "--library"),
        (&[&http, "--threads", "2"], 2, "--library"),
        (&[&http, "--stream"], 2, "--stream is for gRPC"),
        (&[&http, "--pipeline", "2"], 2, "--pipeline is for RESP"),
        (&[&resp, "--pipeline", "2", "--rate", "5"], 2, "--rate"),
        (&[&grpc, "--accept", "json"], 2, "--accept is for HTTP"),
        (&[&http, "--batch", "100001"], 2, "at most 100000"),
        (&[&grpc, "--batch", "100001"], 2, "at most 100000"),
        (&[&resp, "--batch", "100001"], 2, "at most 100000"),
        (&[&http, "--scope", "nope"], 2, "NOT_FOUND"),
        (&[&grpc, "--scope", "nope"], 2, "NOT_FOUND"),
        (&[&grpc, "--stream", "--scope", "nope"], 2, "NOT_FOUND"),
        (&[&resp, "--scope", "nope"], 2, "NOT_FOUND"),
        (&[&http, "--pid", "4194305"], 2, "--pid"),
        (&[&http, "--metrics", &nobody], 3, "does not answer"),
        (&[&nobody], 3, "is `frazil serve` running there?"),
        (&[&crossed], 3, "another protocol's port"),
    ] {
        shell.fails(&[&["bench"][..], args, &SHORT].concat(), code, &[text]);
    }
    let mut injected = shell.command(&["bench", &http]);
    let refused = injected.env("FRAZIL_KEY", "k\r\nX-Injected: 1").output().unwrap();
    let said = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(2), "{said}");
    assert!(said.contains("the key has characters that no key has"), "{said}");
    let output = shell.output(&["bench", "http://u:hunter2@h"]);
    assert!(!String::from_utf8(output.stderr).unwrap().contains("hunter2"));
}
