//! Leasing from the command line, on the file store.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use crate::promises::assert_documented;
use crate::shell::Shell;
use serde_json::Value;

#[test]
fn ten_processes_at_once_print_thirty_distinct_ids() {
    let shell = Shell::new();
    let children: Vec<_> =
        (0..10).map(|_| shell.command(&["next", "-n", "3"]).spawn().unwrap()).collect();
    let mut ids = BTreeSet::new();
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{output:?}");
        ids.extend(str::from_utf8(&output.stdout).unwrap().lines().map(str::to_owned));
    }
    assert_eq!(ids.len(), 30);
}

#[test]
fn released_workers_are_listed_with_their_horizons() {
    let shell = Shell::new();
    let ids = shell.data(&["next", "-n", "3"]);
    let last: u64 = ids.lines().last().unwrap().parse().unwrap();
    let lines = shell.json_lines(&["workers", "ls", "--json"]);
    let [worker] = lines.as_slice() else { panic!("{lines:?}") };
    assert_eq!(worker["worker"], last >> 12 & 1023);
    assert_eq!(worker["state"], "free");
    let horizon_ms = worker["horizon_ms"].as_u64().unwrap();
    assert_eq!(horizon_ms - 1_704_067_200_000, last >> 22, "the horizon is the last tick used");
    assert!(worker["token"].is_string());
    let ls = shell.output(&["workers", "ls"]);
    assert!(!String::from_utf8_lossy(&ls.stdout).contains("free"), "{ls:?}");
    assert!(
        String::from_utf8_lossy(&ls.stderr).contains("1 worker that was used before is free"),
        "{ls:?}"
    );
    let table = shell.data(&["workers", "ls", "--all"]);
    assert!(table.contains("HORIZON") && table.contains("free"), "{table}");
}

#[test]
fn a_holder_is_shown_while_it_prints_and_gone_when_it_is_interrupted() {
    let shell = Shell::new();
    let mut child = shell.command(&["next", "-n", "1000000000"]).spawn().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    let worker = &shell.json_lines(&["workers", "ls", "--json"])[0];
    assert_eq!(
        (&worker["state"], &worker["info"]["pid"]),
        (&Value::from("held"), &Value::from(child.id().to_string()))
    );
    // The TTL and what times may run ahead by.
    let left = worker["seconds_left"].as_f64().unwrap();
    assert!((20.0..=32.0).contains(&left), "{worker}");
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    std::io::copy(&mut output, &mut std::io::sink()).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(shell.json_lines(&["workers", "ls", "--json"])[0]["state"], "free");
}

#[test]
fn a_namespace_is_created_once_and_keeps_its_layout_and_range() {
    let shell = Shell::new();
    let meta = shell.json_lines(&["store", "init", "--workers", "3-4", "--json"]);
    assert_eq!((&meta[0]["first_worker"], &meta[0]["last_worker"]), (&3.into(), &4.into()));
    shell.fails(&["store", "init"], 1, &["exists already", "store show"]);
    for _ in 0..4 {
        let id: u64 = shell.data(&["next"]).trim().parse().unwrap();
        assert!((3..=4).contains(&(id >> 12 & 1023)));
    }
    shell.fails(&["next", "--layout", "twitter"], 4, &["another layout", "Use that layout"]);
    shell.fails(&["next", "--workers", "0-9"], 4, &["3 to 4", "0 to 9"]);
    shell.fails(&["store", "init", "--namespace", "x", "--workers", "0-4096"], 2, &["0 to 1023"]);
    shell.fails(&["store", "init", "--namespace", "x", "--window", "61m"], 2, &["60 minutes"]);
}

#[test]
fn show_prints_the_promises_from_data() {
    let shell = Shell::new();
    let before = shell.data(&["store", "show"]);
    assert!(before.contains("not created yet"), "{before}");
    shell.data(&["next"]);
    let shown = &shell.json_lines(&["store", "show", "--json"])[0];
    assert_eq!(shown["workers"]["free"], 1);
    assert_eq!(shown["workers"]["never_used"], 1023);
    assert_eq!(shown["guarantees"]["uniqueness"], "unconditional");
    assert_documented(shown);
    let text = shell.data(&["store", "show"]);
    assert!(text.contains("a space of IDs"), "{text}");
    for cause in shown["guarantees"]["voided_by"].as_array().unwrap() {
        assert!(text.contains(cause.as_str().unwrap()), "{text}");
    }
}

#[test]
fn an_export_moves_horizons_to_another_store_and_lowers_none() {
    let (old, new) = (Shell::new(), Shell::new());
    let range = ["--workers", "5-5"];
    let id: u64 = old.data(&[&["next"][..], &range].concat()).trim().parse().unwrap();
    let file = old.home().join("export.jsonl");
    fs::write(&file, old.output(&["store", "export"]).stdout).unwrap();
    let file = file.to_str().unwrap();
    let imported = new.output(&["store", "import", file, "--json"]);
    assert!(imported.status.success(), "{imported:?}");
    let after: u64 = new.data(&["next"]).trim().parse().unwrap();
    assert!(after > id && after >> 12 & 1023 == 5);
    let horizon =
        |shell: &Shell| shell.json_lines(&["workers", "ls", "--json"])[0]["horizon_ms"].as_u64();
    let higher = horizon(&new);
    assert!(new.output(&["store", "import", file]).status.success());
    assert_eq!(horizon(&new), higher, "a second import lowered a horizon");
    new.fails(&["store", "import", "/dev/null"], 2, &["no meta"]);
    let lines = fs::read_to_string(file).unwrap();
    let cut = old.home().join("cut.jsonl");
    for kept in 1..lines.lines().count() {
        let text: Vec<_> = lines.lines().take(kept).collect();
        fs::write(&cut, text.join("\n")).unwrap();
        Shell::new().fails(&["store", "import", cut.to_str().unwrap()], 2, &["cut off"]);
    }
    let other = Shell::new();
    other.data(&["next"]);
    other.fails(&["store", "import", file], 4, &["workers 0 to 1023", "5 to 5"]);
}

#[test]
fn what_was_held_when_it_was_exported_is_quarantined() {
    let (old, new) = (Shell::new(), Shell::new());
    let mut child = old.command(&["next", "-n", "1000000000"]).spawn().unwrap();
    let mut line = String::new();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    output.read_line(&mut line).unwrap();
    let export = old.output(&["store", "export"]).stdout;
    child.kill().unwrap();
    child.wait().unwrap();
    let file = new.home().join("export.jsonl");
    fs::write(&file, export).unwrap();
    let imported = new.output(&["store", "import", file.to_str().unwrap()]);
    assert!(imported.status.success(), "{imported:?}");
    new.fails(&["next"], 4, &["quarantine"]);
}

#[test]
fn a_quarantine_is_waited_for_if_it_is_short_and_refused_if_it_is_long() {
    let shell = Shell::new();
    shell.data(&["next"]);
    let until = shell.output(&["store", "quarantine", "--for", "3s", "--json"]);
    assert!(until.status.success(), "{until:?}");
    let until: Value = serde_json::from_slice(&until.stdout).unwrap();
    let output = shell.output(&["next"]);
    assert!(output.status.success(), "{output:?}");
    assert!(str::from_utf8(&output.stderr).unwrap().contains("waiting"), "{output:?}");
    let id: u64 = str::from_utf8(&output.stdout).unwrap().trim().parse().unwrap();
    assert!((id >> 22) + 1_704_067_200_000 > until["quarantine_ms"].as_u64().unwrap());
    shell.output(&["store", "quarantine"]);
    shell.fails(&["next"], 4, &["quarantine"]);
    assert!(shell.data(&["store", "show"]).contains("quarantine   until"));
}

#[test]
fn a_lost_record_is_mended_and_a_poisoned_one_is_repaired() {
    let shell = Shell::new();
    let id = shell.data(&["next", "--workers", "7-7"]);
    let id = id.trim();
    let record = shell.home().join("store/default/w/7");
    let text = fs::read_to_string(&record).unwrap();
    let mut poisoned: Value = serde_json::from_str(&text).unwrap();
    poisoned["horizon"] = 4_000_000_000_000_u64.into();
    fs::write(&record, poisoned.to_string()).unwrap();
    assert_eq!(shell.json_lines(&["workers", "ls", "--json"])[0]["state"], "poisoned");
    shell.fails(&["next"], 3, &["1 poisoned"]);
    let said = shell.output(&["store", "repair"]);
    assert_eq!(said.status.code(), Some(1), "a poisoned worker is left");
    assert!(str::from_utf8(&said.stderr).unwrap().contains("workers repair 7"), "{said:?}");
    shell.fails(&["workers", "repair", "7", "--last-issued", "1"], 2, &["worker 0, not 7"]);
    shell.fails(&["workers", "repair", "8", "--last-issued", id], 2, &["worker 7, not 8"]);
    assert!(shell.output(&["workers", "repair", "7", "--last-issued", id]).status.success());
    let next = shell.data(&["next"]);
    assert!(next.trim().parse::<u64>().unwrap() > id.parse().unwrap());

    fs::remove_file(&record).unwrap();
    assert_eq!(shell.json_lines(&["workers", "ls", "--json"])[0]["state"], "lost");
    let repaired = shell.output(&["store", "repair", "--json"]);
    let repaired: Value = serde_json::from_slice(&repaired.stdout).unwrap();
    assert_eq!(repaired["repaired"], 1);
    assert_eq!(shell.json_lines(&["workers", "ls", "--json"])[0]["state"], "blocked");
    shell.fails(&["next"], 3, &["1 blocked, the first until 20"]);
}

#[test]
fn a_copied_directory_is_refused_until_it_is_adopted() {
    let shell = Shell::new();
    shell.data(&["next"]);
    let copy = Shell::new();
    let copied = Command::new("cp")
        .arg("-a")
        .args([shell.home().join("store"), copy.home().join("store")])
        .status();
    assert!(copied.unwrap().success());
    copy.fails(&["next"], 4, &["copied", "store quarantine --adopt"]);
    assert!(copy.output(&["store", "quarantine", "--adopt", "--for", "1s"]).status.success());
    assert!(copy.output(&["next"]).status.success());
}

#[test]
fn watch_prints_each_change_as_a_line() {
    let shell = Shell::new();
    shell.data(&["next", "--workers", "7-7"]);
    let mut child = shell.command(&["workers", "watch", "--json"]).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = || serde_json::from_str::<Value>(&lines.next().unwrap().unwrap()).unwrap();
    let first = next();
    assert_eq!((&first["worker"], &first["state"]), (&7.into(), &"free".into()));
    let mut holder =
        shell.command(&["next", "-n", "1000000000"]).stdout(Stdio::null()).spawn().unwrap();
    let held = next();
    assert_eq!((&held["worker"], &held["state"]), (&7.into(), &"held".into()));
    holder.kill().unwrap();
    holder.wait().unwrap();
    assert_eq!(next()["state"], "blocked", "a killed holder may have used times up to its horizon");
    assert!(
        Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success()
    );
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn stores_that_cannot_be_used_are_told_apart() {
    let shell = Shell::new();
    shell.fails(&["next", "--store", "file:/dev/null"], 2, &["/dev/null"]);
    shell.fails(&["next", "--store", "file:/proc/frazil"], 4, &["file system", "local disk"]);
    shell.fails(&["workers", "ls"], 1, &["no namespace", "store init"]);
    shell.data(&["next"]);
    let meta = shell.home().join("store/default/meta");
    let text = fs::read_to_string(&meta).unwrap();
    fs::write(&meta, text.replace("\"format\":1", "\"format\":2")).unwrap();
    shell.fails(&["next"], 4, &["newer version", "format 2"]);
    fs::write(&meta, "nonsense").unwrap();
    shell.fails(&["next"], 4, &["unreadable"]);
}

#[test]
fn a_server_that_a_flag_names_counts_for_more_than_the_store_of_the_environment() {
    let shell = Shell::new();
    for flag in [&["--server", "http://127.0.0.1:1"][..], &["--server=http://127.0.0.1:1"]] {
        let mut command = shell.command(&[&["next"], flag].concat());
        command.env("FRAZIL_STORE", "memory:").env("FRAZIL_WORKERS", "0-7");
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(3), "nobody listens there: {output:?}");
    }
    let both = ["next", "--server", "http://127.0.0.1:1", "--store", "memory:"];
    shell.fails(&both, 2, &["cannot be used with"]);
}
