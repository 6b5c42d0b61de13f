//! `frazil elect` on every store: who leads, what becomes of the commands, and with which codes.

mod candidate;
mod ending;
mod frozen;
mod period;
mod settings;
mod verbs;

use std::process::Command;
use std::time::Duration;

use crate::shell::Shell;
use candidate::{Candidate, PATIENCE, WORK, is_dead, lead, leader_of, wait_until_dead};
use frazil_coord::internal::time::boot_time;
use frazil_rig::{Etcd, Redis, ZooKeeper, wait_until};

/// Of the candidates here.
const TTL: Duration = Duration::from_secs(3);
/// By default.
const LOCK_DELAY: Duration = Duration::from_secs(1);
/// For a busy machine, and for servers that look at expiries now and then.
const SLACK: Duration = Duration::from_secs(8);

impl Shell {
    /// `frazil elect demo` with flags, and a command for the shell.
    fn elect(&self, flags: &[&str], work: &str) -> Command {
        let line = [&["elect", "demo"][..], flags, &["--", "sh", "-c", work]].concat();
        let mut command = self.command(&line);
        for (name, _) in std::env::vars().filter(|(name, _)| name.contains("ELECTION")) {
            command.env_remove(name);
        }
        command
    }

    fn candidate(&self, url: &str) -> Candidate {
        Candidate::start(self.elect(&["--store", url, "--ttl", "3s"], WORK))
    }
}

/// One leads; a signal moves the leadership at once, and so does a kill after the TTL.
fn moves_on(url: &str) {
    let shell = Shell::new();
    let mut candidates: Vec<_> = (0..3).map(|_| shell.candidate(url)).collect();
    let (index, first) = leader_of(&candidates);
    let mut leader = candidates.remove(index);
    for other in &candidates {
        other.says("waiting: ");
    }
    let began = boot_time();
    leader.signal("-INT");
    let (index, second) = leader_of(&candidates);
    let took = boot_time() - began;
    assert!(took < TTL, "a resignation is not waited for: {took:?}");
    assert!(second.token > first.token, "{second:?} after {first:?}");
    assert_eq!(leader.code(), Some(130));
    assert!(is_dead(first.pid));

    let mut leader = candidates.remove(index);
    let began = boot_time();
    leader.signal("-KILL");
    wait_until_dead(second.pid);
    let died = boot_time() - began;
    let (_, third) = leader_of(&candidates);
    let took = boot_time() - began;
    assert!(died < took && took < TTL + LOCK_DELAY + SLACK, "dead {died:?}, moved {took:?}");
    assert!(third.token > second.token, "{third:?} after {second:?}");
    assert_eq!(leader.code(), None, "killed");
}

#[test]
fn a_leadership_moves_on_files() {
    let home = tempfile::tempdir().unwrap();
    moves_on(&format!("file:{}", home.path().display()));
}

#[test]
fn a_leadership_moves_on_redis() {
    moves_on(&Redis::start().unwrap().url());
}

#[test]
fn a_leadership_moves_on_etcd() {
    moves_on(&Etcd::start().unwrap().url());
}

#[test]
fn a_leadership_moves_on_zookeeper() {
    moves_on(&ZooKeeper::start().unwrap().url());
}

/// Leaders are printed as they change, by those who do not contend.
#[test]
fn observers_see_every_leader() {
    let shell = Shell::new();
    let redis = Redis::start().unwrap();
    let url = redis.url();
    let at = ["--store", url.as_str()];
    let observe = |more: &[&'static str]| [&["elect", "demo", "--observe"][..], &at, more].concat();
    let nobody = shell.output(&observe(&["--once"]));
    assert_eq!(
        (nobody.status.code(), nobody.stdout.as_slice()),
        (Some(1), &b"demo has no leader\n"[..])
    );
    let observer = Candidate::start(shell.command(&observe(&["--json"])));
    let seen = || -> serde_json::Value { serde_json::from_str(&observer.line()).unwrap() };
    assert!(seen()["leader"].is_null());
    let mut first = shell.candidate(&url);
    let token = first.lead().token.to_string();
    let leader = seen();
    assert_eq!(
        (&leader["election"], &leader["leader"]["token"]),
        (&"demo".into(), &token.as_str().into())
    );
    assert_eq!(leader["leader"]["pid"], first.pid());
    let once = shell.data(&observe(&["--once"]));
    assert!(once.starts_with("demo is led by ") && once.contains(&token), "{once}");
    let once = shell.json_lines(&[&["elect", "demo", "--once", "--json"][..], &at].concat());
    assert_eq!(once[0]["leader"]["token"], token.as_str());
    first.signal("-TERM");
    assert_eq!(first.code(), Some(143));
    assert!(seen()["leader"].is_null());
    drop(observer);
}

/// With `--once` nobody waits.
#[test]
fn who_tries_once_ends_if_somebody_else_leads() {
    let shell = Shell::new();
    let home = tempfile::tempdir().unwrap();
    let url = format!("file:{}", home.path().display());
    let once = ["--store", url.as_str(), "--once"];
    let alone = shell.elect(&once, "echo done").output().unwrap();
    assert_eq!((alone.status.code(), alone.stdout.as_slice()), (Some(0), &b"done\n"[..]));
    let leader = shell.candidate(&url);
    leader.lead();
    let second = shell.elect(&once, "echo done").output().unwrap();
    assert_eq!((second.status.code(), second.stdout.as_slice()), (Some(1), &[][..]));
    let said = String::from_utf8(second.stderr).unwrap();
    assert!(said.contains(&format!(":{}", leader.pid())) && said.contains("leads demo"), "{said}");
}

/// A store that is away is waited for, and the wait is said; with `--once` it is not.
#[test]
fn a_store_that_is_away_is_waited_for() {
    let shell = Shell::new();
    let redis = Redis::start().unwrap();
    redis.kill();
    let url = redis.url();
    let once = shell.elect(&["--store", &url, "--once"], "true").output().unwrap();
    assert_eq!(once.status.code(), Some(3), "{once:?}");
    let mut waiting = shell.candidate(&url);
    waiting.says("waiting for the store: ");
    redis.restart().unwrap();
    waiting.says("the store is there");
    let first = lead(&waiting.line());
    waiting.signal("-TERM");
    assert_eq!(waiting.code(), Some(143));
    assert!(is_dead(first.pid));
    redis.kill();
    let mut waiting = shell.candidate(&url);
    waiting.says("waiting for the store: ");
    waiting.signal("-INT");
    assert_eq!(waiting.code(), Some(130), "a wait can be ended");
    let observe = ["elect", "demo", "--observe", "--store", &url];
    let observer = Candidate::start(shell.command(&observe));
    observer.says("waiting for the store: ");
    shell.fails(&[&observe[..], &["--once"]].concat(), 3, &["unavailable"]);
    redis.restart().unwrap();
    assert_eq!(observer.line(), "demo has no leader");
    redis.kill();
    redis.restart().unwrap();
    let leader = shell.candidate(&url);
    let token = leader.lead().token.to_string();
    let seen = observer.line();
    assert!(seen.contains(&token), "an observer goes on after an outage: {seen}");
}

/// A leader that cannot reach its store stops its command before anybody else can lead.
#[test]
fn without_the_store_the_command_is_stopped_before_the_leadership_ends() {
    let shell = Shell::new();
    let redis = Redis::start().unwrap();
    let flags = ["--store", &redis.url(), "--ttl", "3s"];
    let polite = "trap 'echo asked; exit 9' TERM; echo leader $FRAZIL_FENCE $$; \
                  while :; do sleep 0.05; done";
    let stubborn = "trap '' TERM; echo leader $FRAZIL_FENCE $$; while :; do sleep 0.05; done";
    for work in [polite, stubborn] {
        let mut leader = Candidate::start(shell.elect(&flags, work));
        let first = leader.lead();
        redis.pause().unwrap();
        let began = boot_time();
        wait_until_dead(first.pid);
        let took = boot_time() - began;
        redis.resume().unwrap();
        assert!(took < TTL, "another may lead after {TTL:?}; dead after {took:?}");
        leader.says("is lost");
        assert_eq!(leader.code(), Some(75));
        assert_eq!(leader.line_now().as_deref(), (work == polite).then_some("asked"));
    }
    let next = shell.candidate(&redis.url());
    wait_until("the next leader", PATIENCE, || next.line_now().is_some()).unwrap();
}
