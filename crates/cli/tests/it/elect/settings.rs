//! What can be set, how, and what is refused.

use super::candidate::Candidate;
use crate::shell::Shell;

#[test]
fn what_does_not_go_together_is_refused_before_anything_is_done() {
    let shell = Shell::new();
    for (flags, text) in [
        (&["--ttl", "500ms"][..], "TTL of 500ms"),
        (&["--ttl", "0s"], "from 1ms to 24h"),
        (&["--ttl", "soon"], "whole numbers with ms, s, m or h"),
        (&["--ttl", "2h"], "TTL of 7200s"),
        (&["--heartbeat", "4s"], "at most a third"),
        (&["--retry", "1ms"], "retry interval"),
        (&["--lock-delay", "2h"], "from 0s to 1h"),
        (&["--grace", "9s"], "use at most 3500ms"),
        (&["--wait", "0s"], "from 1ms to 24h"),
        (&["--hold", "1ms"], "from 1s to 8784h"),
        (&["--every", "daily"], "from 1s to 8784h"),
        (&["--once", "--wait", "1s"], "cannot be used with"),
        (&["--once", "--every", "1h"], "cannot be used with"),
        (&["--instance", ""], "instance needs a name"),
        (&["--instance", "me", "--hostname", "a\nb"], "host needs a name"),
        (&["--observe"], "cannot be used with"),
        (&["--json"], "cannot be used with"),
        (&["--store", "static:7"], "no elections"),
        (&["--store", "nonsense"], "store URL"),
    ] {
        let output = shell.elect(flags, "echo ran").output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(2), &[][..]), "{said}");
        assert!(said.contains(text), "{flags:?}: {said}");
    }
    shell.fails(&["elect", "a/b", "--", "true"], 2, &["is not a valid name"]);
    shell.fails(&["elect", "frazil:cluster", "--", "true"], 2, &["Frazil's own"]);
    shell.fails(&["elect", "demo"], 2, &["CMD"]);
    for flag in ["--wait", "--hold", "--every"] {
        shell.fails(&["elect", "demo", "--observe", flag, "1h"], 2, &["cannot be used with"]);
    }
    shell.fails(&["elect"], 2, &["NAME"]);
}

/// Runs with variables; gives the code and what was said.
fn with(variables: &[(&str, &str)]) -> (Option<i32>, String) {
    let shell = Shell::new();
    let mut command = shell.elect(&[], "true");
    let output = command.envs(variables.iter().copied()).output().unwrap();
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn times_come_from_the_environment_under_two_names() {
    for (own, alias, bad, text) in [
        ("FRAZIL_ELECTION_TTL", "LEADER_ELECTION_LOCK_TTL", "500ms", "TTL of 500ms"),
        (
            "FRAZIL_ELECTION_HEARTBEAT",
            "LEADER_ELECTION_HEARTBEAT_INTERVAL",
            "4s",
            "heartbeat of 4s",
        ),
        ("FRAZIL_ELECTION_RETRY", "LEADER_ELECTION_RETRY_INTERVAL", "1ms", "interval of 1ms"),
    ] {
        for name in [own, alias] {
            let (code, said) = with(&[(name, bad)]);
            assert!(code == Some(2) && said.contains(text), "{name}: {said}");
            let (code, said) = with(&[(name, "soon")]);
            assert!(code == Some(2) && said.contains("whole number"), "{name}: {said}");
            let (code, said) = with(&[(name, "2s")]);
            assert_eq!(code, Some(0), "{name}: {said}");
        }
        let (code, said) = with(&[(own, "2s"), (alias, bad)]);
        assert_eq!(code, Some(0), "{own} counts for more: {said}");
        let (code, said) = with(&[(own, bad), (alias, "2s")]);
        assert_eq!(code, Some(2), "{own} counts for more: {said}");
        assert_eq!(with(&[(alias, "")]).0, Some(0), "an empty {alias} says nothing");
        assert!(with(&[(alias, "soon")]).1.contains(alias));
    }
    assert_eq!(with(&[("FRAZIL_ELECTION_LOCK_DELAY", "0s")]).0, Some(0));
    assert_eq!(with(&[("FRAZIL_ELECTION_LOCK_DELAY", "2h")]).0, Some(2));
}

#[test]
fn names_come_from_the_environment_under_two_names() {
    let shell = Shell::new();
    let leader_with = |variables: &[(&str, &str)]| {
        let mut command = shell.elect(&[], super::WORK);
        command.envs(variables.iter().copied());
        let leader = Candidate::start(command);
        leader.lead();
        let seen = shell.json_lines(&["elect", "demo", "--observe", "--once", "--json"]).remove(0);
        let text = |name: &str| seen["leader"][name].as_str().unwrap().to_owned();
        (text("instance"), text("host"), leader.pid())
    };
    let instance = ("LEADER_ELECTION_INSTANCE_ID", "instance-1");
    let host = ("LEADER_ELECTION_HOSTNAME", "server-01");
    let (shown, on, _) = leader_with(&[instance, host]);
    assert_eq!((shown.as_str(), on.as_str()), ("instance-1", "server-01"));
    let own = [("FRAZIL_ELECTION_INSTANCE_ID", "own"), ("FRAZIL_ELECTION_HOSTNAME", "here")];
    let (shown, on, _) = leader_with(&[instance, host, own[0], own[1]]);
    assert_eq!((shown.as_str(), on.as_str()), ("own", "here"));
    let (shown, _, pid) = leader_with(&[own[1]]);
    assert_eq!(shown, format!("here:{pid}"));
}
