//! Servers do not outlive the process that started them, however it ends.

use std::env;
use std::fs;
use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;

use frazil_rig::{Redis, wait_until};

const ABORT: &str = "FRAZIL_RIG_ABORT";

#[test]
fn a_server_ends_with_a_process_that_is_aborted() {
    let mut child = Command::new(env::current_exe().unwrap());
    child.args(["--exact", "a_process_that_starts_a_server_and_is_aborted", "--nocapture"]);
    let directory = tempfile::tempdir().unwrap();
    let output = child.env(ABORT, "1").env("TMPDIR", directory.path()).output().unwrap();
    assert!(!output.status.success());
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let address = printed.lines().find_map(|line| line.split_once("redis at ")).unwrap().1;
    wait_until("the orphan to end", Duration::from_secs(5), || {
        TcpStream::connect(address).is_err()
    })
    .unwrap();
    wait_until("its directories to go", Duration::from_secs(20), || {
        fs::read_dir(directory.path()).unwrap().next().is_none()
    })
    .unwrap();
}

/// Not a test by itself: the test above runs it in a process of its own.
#[test]
fn a_process_that_starts_a_server_and_is_aborted() {
    if env::var_os(ABORT).is_none() {
        return;
    }
    let redis = Redis::start().unwrap();
    println!("redis at {}", redis.address());
    std::process::abort();
}

#[test]
fn a_server_outlives_the_thread_that_started_it() {
    let redis = std::thread::spawn(|| Redis::start().unwrap()).join().unwrap();
    assert_eq!(redis.cli(&["PING"]).unwrap(), "PONG\n");
}
