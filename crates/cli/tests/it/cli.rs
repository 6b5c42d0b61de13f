//! The command as a user meets it: output, exit codes, bad input.

mod decode;

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Output, Stdio};
use std::thread;

use serde_json::Value;

fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_frazil"));
    command.args(args).env_remove("FRAZIL_LAYOUT").env_remove("FRAZIL_WORKER");
    command.env_remove("FRAZIL_CONTEXT").env("XDG_CONFIG_HOME", "/nonexistent");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn frazil(args: &[&str]) -> Output {
    command(args).output().unwrap()
}

/// Runs with input on stdin, written beside the reading of the output.
fn frazil_with_input(args: &[&str], input: impl Into<Vec<u8>>) -> Output {
    let mut child = command(args).stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.into();
    let writer = thread::spawn(move || stdin.write_all(&input));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    output
}

fn stdout(output: &Output) -> &str {
    str::from_utf8(&output.stdout).unwrap()
}

fn stderr(output: &Output) -> &str {
    str::from_utf8(&output.stderr).unwrap()
}

/// The data of a run that must succeed in silence.
fn data(args: &[&str]) -> String {
    let output = frazil(args);
    assert_eq!((output.status.code(), stderr(&output)), (Some(0), ""), "{args:?}");
    stdout(&output).to_owned()
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn next_prints_increasing_ids_of_the_worker() {
    let ids: Vec<u64> = data(&["next", "-n", "5000", "--worker", "7"])
        .lines()
        .map(|id| id.parse().unwrap())
        .collect();
    assert_eq!(ids.len(), 5000);
    assert!(ids.is_sorted_by(|a, b| a < b));
    assert!(ids.iter().all(|id| id >> 12 & 1023 == 7));
}

#[test]
fn processes_that_follow_each_other_on_one_worker_repeat_nothing() {
    let ids: Vec<u64> = (0..20)
        .flat_map(|_| {
            let text = data(&["next", "-n", "2", "--worker", "9"]);
            text.lines().map(|id| id.parse().unwrap()).collect::<Vec<_>>()
        })
        .collect();
    assert!(ids.is_sorted_by(|a, b| a < b));
}

#[test]
fn next_takes_every_form_and_decode_reads_it() {
    for form in ["decimal", "hex", "base32", "base62", "base32-sortable", "base62-sortable"] {
        let id = data(&["next", "--worker", "3", "--format", form]);
        let decoded = json(&data(&["decode", "--json", "--format", form, id.trim_end()]));
        assert_eq!(decoded["worker"], 3, "{form}");
        let issued = json(&data(&["next", "--worker", "3", "--format", form, "--json"]));
        assert!(issued["id"].is_string(), "{form}");
    }
}

#[test]
fn a_mistyped_variable_is_refused_with_the_one_that_was_meant() {
    let output = command(&["next"]).env("FRAZIL_STOER", "x").env("FRAZIL_QX", "").output().unwrap();
    assert_eq!((output.status.code(), stdout(&output)), (Some(2), ""));
    let complaints: Vec<_> = stderr(&output).lines().collect();
    assert_eq!(complaints.len(), 2, "{complaints:?}");
    assert!(
        complaints.iter().any(|line| line.contains("FRAZIL_STOER: did you mean FRAZIL_STORE?"))
    );
    let services = [("FRAZIL_PORT_7780_TCP_ADDR", "10.0.0.1"), ("FRAZIL_SERVICE_HOST", "10.0.0.1")];
    let output = command(&["next", "--worker", "1"]).envs(services).output().unwrap();
    assert_eq!((output.status.code(), stderr(&output)), (Some(0), ""));
}

#[test]
fn encode_undoes_decode() {
    let by_parts = data(&[
        "encode",
        "--layout",
        "discord",
        "--time",
        "2016-04-30T11:18:25.796Z",
        "--part",
        "worker=1",
        "--part",
        "process=0",
        "--sequence",
        "7",
    ]);
    let by_number = data(&[
        "encode",
        "--layout",
        "discord",
        "--time",
        "1462015105796",
        "--worker",
        "32",
        "--sequence",
        "7",
    ]);
    assert_eq!(
        (by_parts.as_str(), by_number.as_str()),
        ("175928847299117063\n", "175928847299117063\n")
    );
    let object = data(&[
        "encode",
        "--json",
        "--layout",
        "discord",
        "--time",
        "1462015105796",
        "--worker",
        "32",
        "--sequence",
        "7",
    ]);
    assert_eq!(object, data(&["decode", "--json", "--layout", "discord", by_parts.trim_end()]));
}

#[test]
fn a_stream_with_bad_lines_loses_no_good_one_and_names_each_bad_one() {
    let long = "9".repeat(100_000);
    let input = format!("1\r\n\nnine\n007\n2\n{long}\n3\n-4\n\u{7}\n18446744073709551615\n5");
    let output = frazil_with_input(&["decode", "-"], input);
    assert_eq!(output.status.code(), Some(2));
    let ids: Vec<&str> =
        stdout(&output).lines().map(|line| line.split(' ').next().unwrap()).collect();
    assert_eq!(ids, ["1", "2", "3", "5"]);
    let messages: Vec<&str> = stderr(&output).lines().collect();
    let expected = [
        "line 3: \"nine\"",
        "line 4: \"007\"",
        "line 6: \"999",
        "line 8: \"-4\"",
        "line 9: \"\\u{7}\"",
        "line 10: \"18446744073709551615\"",
    ];
    assert_eq!(messages.len(), expected.len());
    for (message, expected) in messages.iter().zip(expected) {
        assert!(message.starts_with(&format!("error: {expected}")), "{message}");
        assert!(message.len() < 500, "{message}");
    }
}

#[test]
fn a_stream_of_something_else_is_not_a_flood_of_messages() {
    let output = frazil_with_input(&["decode", "-"], "\u{0}\u{ff}x\n".repeat(5000));
    assert_eq!((output.status.code(), stdout(&output)), (Some(2), ""));
    let messages: Vec<&str> = stderr(&output).lines().collect();
    assert_eq!(messages.len(), 11);
    assert_eq!(messages[10], "error: 4990 more were not IDs of the layout");
}

#[test]
fn between_bounds_a_time_range() {
    let range = ["decode", "--between", "2026-01-01T00:00:00Z", "2026-01-01T00:00:00.001Z"];
    let text = data(&range);
    let (first, last) = text.trim_end().split_once('\n').unwrap();
    let (first, last): (u64, u64) = (first.parse().unwrap(), last.parse().unwrap());
    assert_eq!((first, last - first), (63_158_400_000 << 22, (1 << 22) - 1));
    let object = json(&data(&[&range[..], &["--json"]].concat()));
    assert_eq!(
        (object["first"].as_str(), object["to"].as_str()),
        (Some(first.to_string().as_str()), Some("2026-01-01T00:00:00.001Z"))
    );
}

#[test]
fn layout_shows_facts_and_a_picture() {
    let text = data(&["layout", "js53"]);
    for expected in ["js53: time:41", "|  unused   |", "workers       16", "fits 2^53     yes"] {
        assert!(text.contains(expected), "{expected:?} in\n{text}");
    }
    assert!(text.lines().all(|line| line.len() <= 80));
    let facts =
        json(&data(&["layout", "--json", "time:41 region:3 node:7 sequence:12 @1704067200000"]));
    assert_eq!(facts["name"], Value::Null);
    assert_eq!(facts["ids_per_second"], 4_096_000);
    assert_eq!(
        facts["fields"][1],
        json(r#"{"name":"region","bits":3,"high_bit":21,"low_bit":19}"#)
    );
    // The names of parts are for display: the fingerprint is that of the default layout.
    assert_eq!(facts["fingerprint"], json(&data(&["layout", "--json"]))["fingerprint"]);
}

#[test]
fn bench_measures_and_verifies() {
    let report = json(&data(&[
        "bench",
        "--library",
        "--duration",
        "200ms",
        "--threads",
        "2",
        "--batch",
        "7",
        "--clock",
        "ticker",
        "--verify",
        "--json",
    ]));
    let (results, verify) = (&report["results"], &report["verify"]);
    assert!(results["ids"].as_u64().unwrap() > 10_000);
    assert_eq!((&verify["ids"], &verify["duplicates"]), (&results["ids"], &0.into()));
    assert_eq!((&verify["out_of_order"], &verify["wrong_answers"]), (&0.into(), &0.into()));
    assert!(
        data(&["bench", "--library", "--duration", "50ms", "--verify"])
            .contains("no duplicates, order holds")
    );
}

/// Each with what the message must name: the value, the limit or the fix.
const BAD_INPUT: &[(&[&str], &[&str])] = &[
    (&[], &["Usage: frazil"]),
    (&["nxt"], &["'nxt'", "next"]),
    (&["next", "--store", "mysql://u:hunter2@h"], &["no store is called \"mysql\"", "redis:"]),
    (&["next", "--store", "redis://u:hunter2@h:0"], &["store URL", "1 to 65535"]),
    (&["next", "--store", "memory:", "--workers", "9-3"], &["'9-3'", "0-511"]),
    (&["next", "--store", "memory:", "--workers", "0-1024"], &["0 to 1024", "0 to 1023"]),
    (&["next", "--store", "memory:", "--namespace", "a/b"], &["a/b", "namespace"]),
    (&["next", "--worker", "3", "--store", "memory:"], &["--worker", "--store"]),
    (&["next", "--worker", "3", "--workers", "0-1"], &["--worker", "--workers"]),
    (&["workers", "repair", "7"], &["--last-issued"]),
    (&["store", "quarantine", "--store", "memory:", "--for", "25h"], &["25h"]),
    (&["store", "import", "--store", "memory:", "/nowhere"], &["/nowhere", "cannot be read"]),
    (&["next", "--worker", "1024"], &["worker 1024", "0 to 1023"]),
    (&["next", "--worker", "-1"], &["-1"]),
    (&["next", "--worker", "seven"], &["'seven'", "whole number", "frazil layout"]),
    (&["encode", "--time", "5", "--sequence", "x"], &["'x'", "whole number"]),
    (&["encode", "--time", "5", "--part", "worker=x"], &["'worker=x'", "whole number"]),
    (&["next", "--worker", "18446744073709551616"], &["18446744073709551616"]),
    (&["next", "--worker", "1", "-n", "0"], &["'0'", "1 to 10000000000"]),
    (&["next", "--worker", "1", "-n", "99999999999"], &["'99999999999'", "1 to 10000000000"]),
    (&["next", "--worker", "1", "-n", "1e6"], &["'1e6'", "1 to 10000000000"]),
    (&["next", "--worker", "1", "--layout", "snow"], &["'snow'", "frazil, twitter"]),
    (&["next", "--worker", "1", "--layout", "time:41 sequence:12"], &["epoch is missing", "@"]),
    (&["next", "--worker", "0", "--layout", "mastodon"], &["64 bits", "only be decoded"]),
    (&["next", "--worker", "1", "--format", "roman"], &["'roman'", "base62-sortable"]),
    (&["decode"], &["<ID"]),
    (&["decode", "12a"], &["\"12a\"", "'a' at position 2"]),
    (&["decode", ""], &["at least one digit"]),
    (&["decode", "-5"], &["\"-5\"", "'-' at position 0"]),
    (&["decode", "007"], &["\"007\"", "leading zero"]),
    (&["decode", "18446744073709551616"], &["18446744073709551615"]),
    (&["decode", "9223372036854775808"], &["9223372036854775807", "name the layout"]),
    (&["decode", "--format", "base62-sortable", "abc"], &["exactly 11 letters", "has 3"]),
    (&["decode", "--between", "2026-01-01T00:00:00Z"], &["2 values"]),
    (&["decode", "--between", "5", "5"], &["empty"]),
    (
        &["decode", "--between", "2020-01-01T00:00:00Z", "2026-01-01T00:00:00Z"],
        &["2020-01-01T00:00:00.000Z", "epoch 2024-01-01"],
    ),
    (&["encode"], &["--time"]),
    (&["encode", "--time", "2023-12-31T23:59:59.999Z"], &["2023-12-31T23:59:59.999Z", "epoch"]),
    (&["encode", "--time", "-1"], &["1969-12-31T23:59:59.999Z", "epoch"]),
    (&["encode", "--time", "2093-09-06T15:47:35.552Z"], &["last instant 2093-09-06T15:47:35.551Z"]),
    (&["encode", "--time", "9223372036854775807"], &["last instant"]),
    (&["encode", "--time", "tomorrow"], &["'tomorrow'", "RFC 3339"]),
    (&["encode", "--time", "1704067200000", "--worker", "1024"], &["worker 1024", "0 to 1023"]),
    (&["encode", "--time", "1704067200000", "--sequence", "4096"], &["sequence 4096", "0 to 4095"]),
    (&["encode", "--time", "1704067200000", "--part", "zone=1"], &["\"zone\"", "worker"]),
    (&["encode", "--time", "1704067200000", "--part", "worker=1024"], &["worker 1024", "1023"]),
    (&["encode", "--time", "1704067200000", "--part", "worker"], &["NAME=NUMBER"]),
    (&["layout", "time:41 worker:12 sequence:12 @5"], &["65 bits", "shorten"]),
    (&["bench", "--library", "--duration", "0s"], &["'0s'", "1ms"]),
    (&["bench", "--library", "--duration", "10"], &["'10'", "ms, s, m or h"]),
    (&["bench", "--library", "--threads", "1025"], &["1025", "1024"]),
    (&["bench", "--library", "--batch", "0"], &["0 is not in 1"]),
    (
        &["bench", "--library", "--layout", "time:32 worker:4 sequence:5 @1704067200000 tick:2s"],
        &["2000 ms", "1000 ms"],
    ),
    (&["bench", "--library", "--layout", "sonyflake", "--batch", "25601"], &["25601", "25600"]),
    (
        &["encode", "--time", "1704067200000", "--part", "worker=1", "--part", "worker=2"],
        &["\"worker\"", "twice"],
    ),
    (&["completions", "tcsh"], &["'tcsh'", "bash"]),
];

#[test]
fn bad_input_is_exit_code_2_with_a_message_that_helps() {
    for (args, expected) in BAD_INPUT {
        let output = frazil(args);
        assert_eq!((output.status.code(), stdout(&output)), (Some(2), ""), "{args:?}");
        for text in *expected {
            assert!(stderr(&output).contains(text), "{args:?}: {text:?} in {}", stderr(&output));
        }
        assert!(!stderr(&output).contains("hunter2"), "{args:?}");
    }
}

#[test]
fn the_environment_stands_in_for_flags_and_flags_win() {
    let decode = |layout: &[&str]| {
        let mut command = command(&[&["decode", "--json", "175928847299117063"], layout].concat());
        json(stdout(&command.env("FRAZIL_LAYOUT", "discord").output().unwrap()))
    };
    assert_eq!(decode(&[])["unix_ms"], 1_462_015_105_796_u64);
    assert_ne!(decode(&["--layout", "frazil"])["unix_ms"], 1_462_015_105_796_u64);
}

#[test]
fn decode_answers_each_line_while_the_input_stays_open() {
    let mut child = command(&["decode", "-"]).stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut answers = BufReader::new(child.stdout.take().unwrap()).lines();
    for id in ["1", "2", "3"] {
        writeln!(stdin, "{id}").unwrap();
        assert!(answers.next().unwrap().unwrap().starts_with(&format!("{id} time=")));
    }
    drop(stdin);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_measurement_looks_at_its_end_after_every_call() {
    let report = json(&data(&[
        "bench",
        "--library",
        "--duration",
        "50ms",
        "--layout",
        "sonyflake",
        "--threads",
        "64",
        "--json",
    ]));
    // At 25,600 IDs a second, a thousand calls of each thread would be two seconds and a half.
    assert!(report["results"]["ids"].as_u64().unwrap() < 64 * 1000, "{report}");
}

#[test]
fn a_reader_that_stops_early_is_not_an_error() {
    let mut child = command(&["next", "-n", "10000000", "--worker", "1"]).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), stderr(&output)), (Some(0), ""));
}

#[test]
fn output_that_cannot_be_written_is_exit_code_3() {
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let output = command(&["next", "--worker", "1"]).stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    assert!(stderr(&output).contains("cannot be written"), "{}", stderr(&output));
}

#[test]
fn help_completions_and_manual_pages_cover_every_command() {
    let commands = ["next", "decode", "encode", "layout", "bench", "completions", "man"];
    let help = data(&["--help"]);
    assert!(help.contains("Exit codes:"));
    for name in commands {
        assert!(help.contains(name), "{name}");
        assert!(data(&[name, "--help"]).contains("Example"), "{name}");
    }
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        assert!(
            commands.iter().all(|name| data(&["completions", shell]).contains(name)),
            "{shell}"
        );
    }
    assert!(data(&["man"]).starts_with(".ie"), "a manual page");
    let dir = std::env::temp_dir().join(format!("frazil-man-{}", std::process::id()));
    let output = frazil(&["man", "--dir", dir.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0));
    for name in commands {
        assert!(dir.join(format!("frazil-{name}.1")).is_file(), "{name}");
    }
    std::fs::remove_dir_all(dir).unwrap();
    let output = frazil(&["man", "--dir", "/dev/null/pages"]);
    assert_eq!(output.status.code(), Some(3));
    assert!(stderr(&output).contains("/dev/null/pages"));
}

#[test]
fn errors_tells_what_each_means_and_help_has_topics() {
    let all = data(&["errors"]);
    assert_eq!(all.lines().count(), frazil_wire::Reason::ALL.len() + 1, "{all}");
    let one = data(&["errors", "horizon-reached"]);
    assert!(one.contains("HORIZON_REACHED") && one.contains("HTTP 503"), "{one}");
    let object = json(&data(&["errors", "QUOTA_EXCEEDED", "--json"]));
    assert_eq!(
        (object["http_status"].as_u64(), object["grpc_code"].as_u64()),
        (Some(429), Some(8))
    );
    let output = frazil(&["errors", "OVERLOADD"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("did you mean OVERLOADED?"), "{}", stderr(&output));
    assert!(data(&["help", "layouts"]).contains("discord    time:42"));
    assert!(data(&["help", "workers", "drain"]).contains("frazil workers drain"));
    let output = frazil(&["help", "nonsense"]);
    assert_eq!((output.status.code(), stdout(&output)), (Some(2), ""));
}

#[test]
fn the_version_is_the_package_version() {
    assert_eq!(data(&["--version"]), format!("frazil {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn every_command_has_an_example_in_its_help() {
    let commands: [&[&str]; 21] = [
        &["context", "add"],
        &["context", "use"],
        &["context", "ls"],
        &["context", "rm"],
        &["doctor"],
        &["next"],
        &["decode"],
        &["encode"],
        &["layout"],
        &["bench"],
        &["completions"],
        &["man"],
        &["workers", "ls"],
        &["workers", "watch"],
        &["workers", "repair"],
        &["store", "init"],
        &["store", "show"],
        &["store", "export"],
        &["store", "import"],
        &["store", "quarantine"],
        &["store", "repair"],
    ];
    for command in commands {
        let help = data(&[command, &["--help"]].concat());
        let example = format!("  frazil {}", command.join(" "));
        assert!(help.contains("Example") && help.contains(&example), "{command:?}: {help}");
    }
}

#[test]
fn the_help_of_store_lists_every_scheme_and_option_that_there_is() {
    let help = data(&["help", "stores"]);
    let known = |url: &str, before: &str| {
        let output = frazil(&["store", "show", "--store", url]);
        let (_, list) = stderr(&output).split_once(before).unwrap();
        list.trim().split(", ").map(str::to_owned).collect::<Vec<_>>()
    };
    let schemes = known("nothing:", "use ");
    assert!(schemes.len() > 10, "{schemes:?}");
    for scheme in schemes {
        assert!(help.contains(&scheme), "{scheme} in {help}");
    }
    for url in ["file:x?no=1", "static:1?no=1", "redis://h?no=1", "etcd://h?no=1", "zk://h?no=1"] {
        for option in known(url, "it has ") {
            assert!(help.contains(&format!("{option}=")), "{option} in {help}");
        }
    }
}
