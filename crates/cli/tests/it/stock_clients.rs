//! Tools and clients that others wrote, against a real server.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::serving::Served;

/// The Python that `make deps` set up.
fn python() -> PathBuf {
    let python = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/python/bin/python");
    assert!(python.exists(), "run make deps: it installs the stock clients");
    python
}

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/stock_clients").join(name)
}

/// What a command prints that must succeed.
fn printed(command: &mut Command) -> String {
    let output: Output = command.stdin(Stdio::null()).output().unwrap();
    let (out, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}: {out}\n{err}");
    out.into_owned()
}

#[test]
fn redis_cli_gets_ids() {
    let served = Served::dev(&[]);
    let port = served.resp_port();
    let cli = |args: &[&str]| printed(Command::new("redis-cli").args(["-p", &port]).args(args));
    let first: u64 = cli(&["ID.NEXT"]).trim().parse().unwrap();
    let second: u64 = cli(&["INCR", "orders"]).trim().parse().unwrap();
    assert!(first < second);
    assert_eq!(cli(&["ID.NEXT", "3"]).lines().count(), 3);
    assert!(cli(&["-3", "ID.INFO"]).contains("namespace"));
    assert!(cli(&["INFO"]).contains("redis_version:"));
    assert!(cli(&["ID.NEXT", "0"]).contains("COUNT_OUT_OF_RANGE"));
}

#[test]
fn redis_benchmark_runs_without_a_warning() {
    let served = Served::dev(&[]);
    for pipeline in ["1", "16"] {
        let port = served.resp_port();
        let args = ["-p", &port, "-n", "20000", "-P", pipeline, "--csv", "INCR", "x"];
        let out = printed(Command::new("redis-benchmark").args(args));
        assert!(out.contains("\"INCR x\"") && !out.contains("WARN"), "{out}");
    }
}

#[test]
fn redis_py_gets_ids() {
    let served = Served::dev(&[]);
    let out =
        printed(Command::new(python()).arg(script("ids_by_redis.py")).arg(served.resp_port()));
    assert_eq!(out.trim(), "ok");
}

#[test]
fn python_grpc_gets_ids_by_reflection() {
    let served = Served::dev(&[]);
    let out = printed(Command::new(python()).arg(script("ids_by_reflection.py")).arg(&served.grpc));
    assert_eq!(out.trim(), "ok");
}

#[test]
fn promtool_finds_nothing_to_say_about_the_metrics() {
    let served = Served::dev(&["--scope", "orders"]);
    served.request("POST", "/ids?count=3&scope=orders");
    served.request("POST", "/ids?count=0");
    let (status, page) = served.request("GET", "/metrics");
    assert_eq!(status, 200);
    let check = |page: &str| {
        use std::io::Write;
        let mut child = Command::new("promtool")
            .args(["check", "metrics"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(page.as_bytes()).unwrap();
        child.wait_with_output().unwrap()
    };
    let output = check(&page);
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}\n{page}");
    // The check can fail: a counter without its suffix is found.
    let broken = page.replace("frazil_requests_total", "frazil_requests");
    assert!(!check(&broken).status.success());
}

#[test]
fn schemathesis_finds_nothing() {
    let served = Served::dev(&["--scope", "orders"]);
    let url = format!("http://{}/openapi.json", served.http);
    let program = python().with_file_name("schemathesis");
    let config = script("schemathesis.toml");
    let scratch = tempfile::tempdir().unwrap();
    let out = printed(
        Command::new(program)
            .arg("--config-file")
            .arg(config)
            .args(["run", &url, "--max-examples", "40", "--seed", "7", "--no-color"])
            .current_dir(scratch.path()),
    );
    // "430 generated, 430 passed"
    let line = out.lines().find(|line| line.contains(" generated, ")).unwrap_or(&out);
    let counts: Vec<u32> = line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    assert!(counts.len() == 2 && counts[0] == counts[1] && counts[0] > 200, "{out}");
    // The run has seen every operation there is, but for its own description.
    assert!(out.contains("Selected: 16/16") && out.contains("Tested: 16"), "{out}");
}
