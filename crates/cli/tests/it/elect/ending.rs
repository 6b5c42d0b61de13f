//! How commands end, and what is left of them.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::time::Duration;

use frazil_rig::{Redis, wait_until};

use super::candidate::{Candidate, is_dead, parent_of, signal, wait_until_dead};
use crate::shell::Shell;

#[test]
fn the_code_of_the_command_is_ours() {
    let shell = Shell::new();
    for (work, code) in [("true", 0), ("exit 3", 3), ("exit 255", 255)] {
        let output = shell.elect(&[], work).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{work}: {output:?}");
    }
    for (signal, code) in [("KILL", 137), ("TERM", 143), ("SEGV", 139)] {
        let output = shell.elect(&[], &format!("kill -{signal} $$")).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{signal}: {output:?}");
    }
    let script = shell.home().join("not-executable");
    std::fs::write(&script, "true").unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o600)).unwrap();
    let script = script.to_str().unwrap();
    shell.fails(&["elect", "demo", "--", script], 126, &["cannot be run", "not-executable"]);
    shell.fails(&["elect", "demo", "--", "/no/such/command"], 127, &["cannot be run"]);
}

#[test]
fn the_command_knows_its_token_and_gets_its_arguments_as_they_are() {
    let shell = Shell::new();
    let line = ["elect", "demo", "--instance", "me", "--", "sh", "-c"];
    let work = "echo $FRAZIL_ELECTION $FRAZIL_INSTANCE \"$0|$1|$2\"; echo $FRAZIL_FENCE";
    let printed = shell.data(&[&line[..], &[work, "--ttl", "a  b", "--"]].concat());
    let (names, token) = printed.split_once('\n').unwrap();
    assert_eq!(names, "demo me --ttl|a  b|--");
    let first: u64 = token.trim().parse().unwrap();
    let printed = shell.data(&[&line[..], &["echo $FRAZIL_FENCE"]].concat());
    assert!(printed.trim().parse::<u64>().unwrap() > first);
}

#[test]
fn signals_are_passed_on_and_waited_for() {
    let shell = Shell::new();
    for (signal, name, code) in [("-INT", "INT", 7), ("-TERM", "TERM", 7), ("-HUP", "HUP", 7)] {
        let work = format!(
            "trap 'echo got {name}; exit 7' {name}; echo leader $FRAZIL_FENCE $$; \
             while :; do sleep 0.05; done"
        );
        let mut leader = Candidate::start(shell.elect(&[], &work));
        leader.lead();
        leader.signal(signal);
        assert_eq!(leader.line(), format!("got {name}"));
        assert_eq!(leader.code(), Some(code));
    }
}

#[test]
fn who_does_not_listen_is_killed_after_the_grace_with_all_its_group() {
    let shell = Shell::new();
    let work = "trap '' TERM; sleep 1000 & echo $!; echo leader $FRAZIL_FENCE $$; \
                while :; do sleep 0.05; done";
    let mut leader = Candidate::start(shell.elect(&["--grace", "300ms"], work));
    let background: u32 = leader.line().parse().unwrap();
    let lead = leader.lead();
    leader.signal("-TERM");
    assert_eq!(leader.code(), Some(137));
    assert!(is_dead(lead.pid) && is_dead(background));
}

#[test]
fn what_a_command_leaves_behind_does_not_outlive_the_leadership() {
    let shell = Shell::new();
    let mut leader = Candidate::start(shell.elect(&[], "sleep 1000 >/dev/null 2>&1 & echo $!"));
    let background: u32 = leader.line().parse().unwrap();
    assert_eq!(leader.code(), Some(0));
    assert!(is_dead(background));
}

#[test]
fn no_kill_of_any_of_them_leaves_the_command_behind() {
    let shell = Shell::new();
    let work = "sleep 1000 & echo $!; echo leader $FRAZIL_FENCE $$; wait";
    let mut leader = Candidate::start(shell.elect(&[], work));
    let background: u32 = leader.line().parse().unwrap();
    let first = leader.lead();
    signal("-KILL", &parent_of(first.pid).to_string());
    assert_eq!(leader.code(), Some(137));
    assert!(is_dead(first.pid) && is_dead(background), "the guard was killed");

    let leader = Candidate::start(shell.elect(&[], work));
    let background: u32 = leader.line().parse().unwrap();
    let second = leader.lead();
    assert!(second.token > first.token);
    leader.signal("-KILL");
    wait_until_dead(second.pid);
    wait_until_dead(background);
}

/// Neither of those who watch is left to kill the command: the kernel does.
fn dies_with_both(url: &str) {
    let shell = Shell::new();
    let leader = shell.candidate(url);
    let command = leader.lead().pid;
    let both = [parent_of(command).to_string(), leader.pid().to_string()];
    let mut kill = Command::new("kill");
    assert!(kill.args(["-KILL", "--"]).args(&both).status().unwrap().success());
    wait_until("the command to be dead", Duration::from_secs(3), || is_dead(command)).unwrap();
}

#[test]
fn the_command_dies_with_both_that_watch_it() {
    let home = tempfile::tempdir().unwrap();
    dies_with_both(&format!("file:{}", home.path().display()));
    dies_with_both(&Redis::start().unwrap().url());
}

#[test]
fn the_guard_is_of_no_use_alone() {
    let shell = Shell::new();
    let line = ["elect-guard", "--parent", "1", "--deadline", "3", "--", "echo", "unguarded"];
    shell.fails(&line, 2, &["run that"]);
    let line = ["elect-work", "--parent", "1", "--", "echo", "unguarded"];
    shell.fails(&line, 2, &["run that"]);
    let has_a_part = |text: &str| text.contains("elect-guard") || text.contains("elect-work");
    let help = shell.data(&["--help"]);
    assert!(help.contains("elect ") && !has_a_part(&help), "{help}");
    for shell_name in ["bash", "zsh", "fish"] {
        let script = shell.data(&["completions", shell_name]);
        assert!(script.contains("elect") && !has_a_part(&script), "{shell_name}");
    }
}
