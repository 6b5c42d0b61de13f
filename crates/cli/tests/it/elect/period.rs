//! Once a period, for a while afterwards, and not for ever: `--every`, `--hold` and `--wait`.

use std::path::Path;
use std::time::Duration;

use frazil_coord::internal::time::{boot_time, unix_ms};
use frazil_rig::{Etcd, FalseClock, Redis, ZooKeeper, wait_until};

use super::candidate::{Candidate, PATIENCE};
use crate::shell::Shell;

/// A command that leaves a line in a file, by which runs are counted.
fn counted(file: &Path) -> String {
    format!("date +%s%3N >> '{}'", file.display())
}

/// When the runs were, in Unix milliseconds.
fn runs(file: &Path) -> Vec<u64> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    text.lines().map(|line| line.parse().unwrap()).collect()
}

/// The night of three machines: one runs the command, and the others end well and say who did. So
/// does whoever comes later.
fn runs_once(url: &str) {
    let shell = Shell::new();
    let file = shell.home().join("runs");
    let flags = ["--every", "24h", "--store", url];
    let night = || Candidate::start(shell.elect(&flags, &counted(&file)));
    let before = unix_ms();
    let mut machines: Vec<_> = (0..3).map(|_| night()).collect();
    assert!(unix_ms() - before < 1000, "they are started within a second");
    for machine in &mut machines {
        assert_eq!(machine.code(), Some(0));
    }
    assert_eq!(runs(&file).len(), 1, "on {url}");
    let leads =
        |machine: &Candidate| machine.all_said().iter().any(|line| line.starts_with("leading "));
    let is_leader: Vec<_> = machines.iter().map(leads).collect();
    assert_eq!(is_leader.iter().filter(|leads| **leads).count(), 1);
    let leader = machines.iter().zip(&is_leader).find(|(_, leads)| **leads).unwrap().0;
    let mut late = night();
    let said = late.says("not run: ");
    assert!(said.contains(&format!(":{} on ", leader.pid())), "{said}");
    assert_eq!(late.code(), Some(0));
    assert_eq!(runs(&file).len(), 1);
}

#[test]
fn three_machines_run_a_nightly_job_once_on_files() {
    let home = tempfile::tempdir().unwrap();
    runs_once(&format!("file:{}", home.path().display()));
}

#[test]
fn three_machines_run_a_nightly_job_once_on_redis() {
    runs_once(&Redis::start().unwrap().url());
}

#[test]
fn three_machines_run_a_nightly_job_once_on_etcd() {
    runs_once(&Etcd::start().unwrap().url());
}

#[test]
fn three_machines_run_a_nightly_job_once_on_zookeeper() {
    runs_once(&ZooKeeper::start().unwrap().url());
}

#[test]
fn a_run_is_remembered_through_a_restart_of_the_store_and_after_a_crash() {
    let shell = Shell::new();
    let etcd = Etcd::start().unwrap();
    let url = etcd.url();
    let flags = ["--every", "1h", "--ttl", "2s", "--lock-delay", "0s", "--store", url.as_str()];
    let first = Candidate::start(shell.elect(&flags, super::WORK));
    first.lead();
    first.signal("-KILL");
    etcd.restart().unwrap();
    let mut second = Candidate::start(shell.elect(&flags, "echo ran"));
    second.says("not run: ");
    assert_eq!((second.code(), second.line_now()), (Some(0), None));
}

#[test]
fn after_the_period_it_is_run_again_and_a_failure_is_a_run_too() {
    let shell = Shell::new();
    let file = shell.home().join("runs");
    let work = format!("{}; exit 7", counted(&file));
    let mut codes = Vec::new();
    wait_until("three runs", PATIENCE, || {
        codes.push(shell.elect(&["--every", "2s"], &work).output().unwrap().status.code());
        runs(&file).len() == 3
    })
    .unwrap();
    assert_eq!(codes.iter().filter(|code| **code == Some(7)).count(), 3);
    assert!(codes.contains(&Some(0)) && codes.iter().all(|code| [Some(0), Some(7)].contains(code)));
    for pair in runs(&file).windows(2) {
        // The time that counts is that of the election, a little before.
        assert!(pair[1] - pair[0] > 1800, "{pair:?}");
    }
}

/// Cron is never on time to the second: who comes early in the next night waits for it, and in the
/// middle of the day nobody runs anything.
#[test]
fn the_next_night_it_is_run_once_again_though_it_comes_early() {
    let (shell, clock) = (Shell::new(), FalseClock::new().unwrap());
    let file = shell.home().join("runs");
    let night = || {
        let mut command = shell.elect(&["--every", "24h"], &counted(&file));
        command.envs(clock.environment());
        Candidate::start(command)
    };
    let day = Duration::from_hours(24);
    for (ahead, total) in [(Duration::ZERO, 1), (day / 2, 1), (day - Duration::from_secs(4), 2)] {
        clock.set_ahead(ahead).unwrap();
        let mut machines: Vec<_> = (0..3).map(|_| night()).collect();
        for machine in &mut machines {
            assert_eq!(machine.code(), Some(0), "{:?}", machine.all_said());
        }
        assert_eq!(runs(&file).len(), total, "{ahead:?} after the first");
    }
    let nights = runs(&file);
    let period = u64::try_from(day.as_millis()).unwrap();
    assert!(nights[1] - nights[0] > period - 1000, "{nights:?}");
}

#[test]
fn who_waits_gives_up_with_a_code_of_its_own() {
    let shell = Shell::new();
    let home = tempfile::tempdir().unwrap();
    let url = format!("file:{}", home.path().display());
    let leader = shell.candidate(&url);
    leader.lead();
    let began = boot_time();
    let mut second = Candidate::start(shell.elect(&["--store", &url, "--wait", "1s"], "echo ran"));
    second.says("waiting: ");
    second.says("not elected leader of demo within 1s");
    assert_eq!((second.code(), second.line_now()), (Some(124), None));
    assert!(boot_time() - began >= Duration::from_secs(1));
    leader.signal("-TERM");
    let third = shell.elect(&["--store", &url, "--wait", "50s"], "echo ran").output().unwrap();
    assert_eq!((third.status.code(), third.stdout.as_slice()), (Some(0), &b"ran\n"[..]));
    let redis = Redis::start().unwrap();
    redis.kill();
    let away =
        shell.elect(&["--store", &redis.url(), "--wait", "1s"], "echo ran").output().unwrap();
    assert_eq!((away.status.code(), away.stdout.as_slice()), (Some(124), &[][..]));
}

#[test]
fn a_leadership_is_held_after_a_success_and_only_then() {
    let shell = Shell::new();
    let once = || shell.elect(&["--once"], "true").output().unwrap().status.code();
    let mut holder = Candidate::start(shell.elect(&["--hold", "1h"], "echo done"));
    assert_eq!(holder.line(), "done");
    holder.says("for another 1h");
    assert_eq!(once(), Some(1), "somebody leads");
    assert!(!holder.has_ended());
    holder.signal("-TERM");
    assert_eq!(holder.code(), Some(0), "the command succeeded");
    assert_eq!(once(), Some(0));
    let began = boot_time();
    let failed = shell.elect(&["--hold", "1h"], "exit 3").output().unwrap();
    assert_eq!(failed.status.code(), Some(3));
    let held = shell.elect(&["--hold", "2s"], "true").output().unwrap();
    assert_eq!(held.status.code(), Some(0));
    assert!(boot_time() - began >= Duration::from_secs(2));
    assert_eq!(once(), Some(0));
}
