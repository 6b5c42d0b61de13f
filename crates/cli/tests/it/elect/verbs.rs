//! `frazil elect ls` and `frazil elect forget`, on every store.

use std::process::Command;
use std::time::Duration;

use frazil_rig::{Etcd, FalseClock, Redis, ZooKeeper, wait_until};
use serde_json::Value;

use super::candidate::PATIENCE;
use crate::shell::Shell;

/// An election is listed while it is led and afterwards, until it is forgotten: not while it is led, nor
/// at once.
fn lists_and_forgets(url: &str) {
    let shell = Shell::new();
    let at = ["--store", url];
    let listed = || shell.json_lines(&[&["elect", "ls", "--json"][..], &at].concat());
    let forget = [&["elect", "forget", "demo"][..], &at].concat();
    assert_eq!(listed(), [] as [Value; 0]);
    shell.fails(&forget, 1, &["no election \"demo\""]);

    let mut leader = shell.candidate(url);
    let token = leader.lead().token;
    let [election] = &listed()[..] else { panic!("{:?}", listed()) };
    assert_eq!(
        (&election["election"], &election["state"], &election["token"]),
        (&"demo".into(), &"led".into(), &token.to_string().into())
    );
    assert_eq!(election["leader"]["pid"], leader.pid());
    let ms = |name: &str| election["leader"][name].as_u64().unwrap();
    assert!(ms("renewed_ms").abs_diff(ms("elected_ms")) < 60_000, "{election}");
    // The others end a presence, and do not say when.
    let left = &election["seconds_left"];
    let is_told = url.starts_with("redis:");
    assert_eq!(left.as_f64().is_some_and(|left| left > 0.0), is_told, "{election}");
    let table = shell.data(&[&["elect", "ls"][..], &at].concat());
    for text in ["ELECTION", "LEADER", "SINCE", "HEARTBEAT", "SECONDS LEFT", &token.to_string()] {
        assert!(table.contains(text), "{text} in {table}");
    }
    shell.fails(&forget, 4, &["demo has a leader"]);

    leader.signal("-TERM");
    assert_eq!(leader.code(), Some(143));
    let election = &listed()[0];
    assert_eq!(
        (&election["state"], &election["leader"], &election["last"]["pid"]),
        (&"free".into(), &Value::Null, &leader.pid().into())
    );
    let heard = election["last"]["renewed_ms"].as_u64().unwrap();
    assert!(frazil_coord::internal::time::unix_ms().abs_diff(heard) < 60_000, "{election}");
    shell.fails(&forget, 4, &["had a leader a moment ago", "again in "]);
    wait_until("the guard to be over", PATIENCE, || shell.output(&forget).status.success())
        .unwrap();
    assert_eq!(listed(), [] as [Value; 0]);
    shell.fails(&forget, 1, &["no election"]);

    let next = shell.candidate(url).lead().token;
    assert!(next > token, "{next} came after {token}");
}

#[test]
fn elections_are_listed_and_forgotten_on_files() {
    let home = tempfile::tempdir().unwrap();
    lists_and_forgets(&format!("file:{}", home.path().display()));
}

#[test]
fn elections_are_listed_and_forgotten_on_redis() {
    lists_and_forgets(&Redis::start().unwrap().url());
}

#[test]
fn elections_are_listed_and_forgotten_on_etcd() {
    lists_and_forgets(&Etcd::start().unwrap().url());
}

#[test]
fn elections_are_listed_and_forgotten_on_zookeeper() {
    lists_and_forgets(&ZooKeeper::start().unwrap().url());
}

/// A verb is a name too, for those who say so.
#[test]
fn an_election_can_have_the_name_of_a_verb() {
    let shell = Shell::new();
    for name in ["ls", "forget", "run"] {
        let line = ["elect", "run", name, "--once", "--", "sh", "-c", "echo $FRAZIL_ELECTION"];
        assert_eq!(shell.data(&line), format!("{name}\n"));
    }
    let names: Vec<_> = shell.json_lines(&["elect", "ls", "--json"]);
    let names: Vec<_> = names.iter().map(|election| election["election"].as_str()).collect();
    assert_eq!(names, [Some("forget"), Some("ls"), Some("run")]);
    // A command is not a verb, nor is what follows a name.
    assert_eq!(shell.data(&["elect", "demo", "--once", "--", "echo", "ls"]), "ls\n");
    shell.fails(&["elect", "demo", "ls"], 2, &["ls"]);
    shell.fails(&["elect"], 2, &["NAME"]);
    shell.fails(&["elect", "forget"], 2, &["NAME"]);
    shell.fails(&["elect", "forget", "no/name"], 2, &["no/name"]);
}

/// A leader whose clock was two hours ahead had a token of then. Whatever becomes of the namespace after
/// its election was forgotten, the next token is larger.
#[test]
fn the_token_of_a_forgotten_election_outlasts_init_and_import() {
    let (shell, other, clock) = (Shell::new(), Shell::new(), FalseClock::new().unwrap());
    clock.set_ahead(Duration::from_hours(2)).unwrap();
    let token = |command: &mut Command| -> u64 {
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        str::from_utf8(&output.stdout).unwrap().trim().parse().unwrap()
    };
    let elect = |shell: &Shell| shell.elect(&["--once"], "echo $FRAZIL_FENCE");
    let ahead = token(elect(&shell).envs(clock.environment()));
    assert!(ahead > frazil_coord::internal::time::unix_ms() + 3_600_000);
    shell.data(&["elect", "forget", "demo"]);
    shell.data(&["store", "init"]);
    let file = shell.home().join("export.jsonl");
    std::fs::write(&file, shell.data(&["store", "export"])).unwrap();
    assert!(token(&mut elect(&shell)) > ahead, "after init");

    for _ in ["into nothing", "into what is there"] {
        other.data(&["store", "import", file.to_str().unwrap()]);
        assert!(token(&mut elect(&other)) > ahead, "after an import");
    }
    let third = Shell::new();
    third.data(&["store", "init"]);
    third.data(&["store", "import", file.to_str().unwrap()]);
    assert!(token(&mut elect(&third)) > ahead, "after an import into a namespace of its own");
}
