//! Directories from the command line: what is created when, fixed workers, full pools, repairs.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command};

use crate::promises::assert_documented;
use crate::shell::Shell;
use serde_json::Value;

fn stderr(output: &std::process::Output) -> &str {
    str::from_utf8(&output.stderr).unwrap()
}

/// A process that prints IDs until it is told to end; it has its worker when this returns.
fn holder(shell: &Shell, args: &[&str]) -> Child {
    let mut child =
        shell.command(&[&["next", "-n", "10000000000"], args].concat()).spawn().unwrap();
    let mut first = [0];
    child.stdout.as_mut().unwrap().read_exact(&mut first).unwrap();
    child
}

/// Sends a signal, and gives the exit code.
fn end(mut child: Child, signal: &str) -> Option<i32> {
    let pid = child.id().to_string();
    assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
    std::io::copy(&mut child.stdout.take().unwrap(), &mut std::io::sink()).unwrap();
    child.wait().unwrap().code()
}

#[test]
fn looking_and_failing_create_nothing() {
    let shell = Shell::new();
    let missing: [&[&str]; 8] = [
        &["workers", "ls"],
        &["workers", "watch"],
        &["workers", "repair", "0", "--last-issued", "4096"],
        &["store", "export"],
        &["store", "quarantine"],
        &["store", "repair"],
        &["workers", "ls", "--store", "static:3"],
        &["store", "repair", "--store", "static:3"],
    ];
    for args in missing {
        shell.fails(args, 1, &["no namespace \"default\"", "frazil next", "frazil store init"]);
    }
    let shown = shell.data(&["store", "show"]);
    assert!(shown.contains("not created yet") && shown.contains("store init"), "{shown}");
    shell.data(&["store", "show", "--store", "static:3"]);
    shell.fails(&["store", "quarantine", "--adopt"], 1, &["to adopt", "--store"]);
    shell.fails(&["store", "import", "/dev/null"], 2, &["no meta"]);
    shell.fails(&["store", "init", "--workers", "0-9999"], 2, &["0 to 1023"]);
    assert_eq!(fs::read_dir(shell.home()).unwrap().count(), 0, "something was created");
}

#[test]
fn a_fixed_worker_is_created_with_its_own_range_window_and_promises() {
    let shell = Shell::new();
    let store = ["--store", "static:7"];
    let with = |args: &[&'static str]| [args, &store].concat();
    let meta = &shell.json_lines(&with(&["store", "init", "--json"]))[0];
    assert_eq!(
        (&meta["first_worker"], &meta["last_worker"], &meta["window_ms"]),
        (&7.into(), &7.into(), &3000.into())
    );
    let shown = &shell.json_lines(&with(&["store", "show", "--json"]))[0];
    assert_eq!(shown["guarantees"]["uniqueness"], "conditional");
    assert!(shown["guarantees"]["store"].as_str().unwrap().contains("fixed"), "{shown}");
    assert!(shown["store"].as_str().unwrap().starts_with("static:7"), "{shown}");
    assert_documented(shown);
    let id: u64 = shell.data(&with(&["next"])).trim().parse().unwrap();
    assert_eq!(id >> 12 & 1023, 7);
    shell.fails(&with(&["store", "init", "--workers", "0-9"]), 2, &["worker 7 alone"]);
    shell.fails(&with(&["store", "init", "--window", "10m"]), 2, &["3 s"]);
    shell.fails(&["store", "init", "--store", "static:4096"], 2, &["0 to 1023"]);
}

#[test]
fn a_full_pool_is_waited_for_and_then_its_holders_are_named() {
    let shell = Shell::new();
    shell.data(&["store", "init", "--workers", "5-5"]);
    let holding = holder(&shell, &[]);
    let pid = holding.id().to_string();
    shell.fails(
        &["next", "--patience", "300ms"],
        3,
        &["within 0.3 s", "1 held", "worker 5 by", &pid, "--patience"],
    );
    let mut waiting = shell.command(&["next"]).spawn().unwrap();
    let mut said = BufReader::new(waiting.stderr.take().unwrap());
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    assert!(line.contains("waiting") && line.contains("1 held"), "{line}");
    assert_eq!(end(holding, "-TERM"), Some(143));
    let output = waiting.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn many_at_once_share_one_worker_one_after_the_other() {
    let shell = Shell::new();
    shell.data(&["store", "init", "--workers", "5-5"]);
    let children: Vec<_> =
        (0..8).map(|_| shell.command(&["next", "-n", "2"]).spawn().unwrap()).collect();
    let mut ids = BTreeSet::new();
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{output:?}");
        assert!(!stderr(&output).contains("0 held, 0 not"), "{output:?}");
        ids.extend(str::from_utf8(&output.stdout).unwrap().lines().map(str::to_owned));
    }
    assert_eq!(ids.len(), 16);
}

#[test]
fn next_prints_objects_with_the_token_of_its_lease() {
    let shell = Shell::new();
    let issued = shell.json_lines(&["next", "-n", "3", "--workers", "6-6", "--json"]);
    let worker = &shell.json_lines(&["workers", "ls", "--json"])[0];
    for object in &issued {
        assert_eq!(
            (&object["worker"], &object["token"]),
            (&6.into(), &worker["token"]),
            "{object}"
        );
        let decoded = &shell.json_lines(&["decode", "--json", object["id"].as_str().unwrap()])[0];
        assert_eq!((&decoded["time"], &decoded["worker"]), (&object["time"], &object["worker"]));
    }
    let alone = &shell.json_lines(&["next", "--worker", "3", "--json"])[0];
    assert_eq!((&alone["worker"], &alone["token"]), (&3.into(), &Value::Null));
}

#[test]
fn a_long_tick_is_told_of_only_when_it_is_waited_for() {
    let shell = Shell::new();
    let layout = "time:32 worker:4 sequence:5 @1704067200000 tick:600s";
    let refused = shell.output(&["next", "--layout", layout]);
    // Within the last seconds of a tick there is nothing to refuse.
    if !refused.status.success() {
        assert_eq!(refused.status.code(), Some(4), "{refused:?}");
        let said = stderr(&refused);
        assert!(said.contains("no ID before 20") && said.contains("takes 10m"), "{said}");
    }
    let new = ["--namespace", "known-to-be-new", "--layout", layout];
    shell.data(&[&["store", "init"][..], &new].concat());
    let leased = shell.output(&[&["next"][..], &new].concat());
    assert_eq!(
        (leased.status.code(), stderr(&leased)),
        (Some(0), ""),
        "a new worker waits for nothing"
    );
    let mut waiting =
        shell.command(&["next", "--layout", layout, "--worker", "3"]).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(waiting.stderr.take().unwrap()).read_line(&mut line).unwrap();
    waiting.kill().unwrap();
    waiting.wait().unwrap();
    // Within the last second of a tick there is nothing to tell.
    assert!(line.is_empty() || line.contains("s for the next tick"), "{line}");
}

#[test]
fn a_meta_record_that_is_unreadable_or_gone_is_created_anew_in_quarantine() {
    let shell = Shell::new();
    shell.data(&["next", "--workers", "3-4"]);
    let meta = shell.home().join("store/default/meta");
    fs::write(&meta, "nonsense").unwrap();
    let removal = format!("rm {}", meta.display());
    for args in [&["next"][..], &["store", "show"], &["store", "repair"]] {
        shell.fails(args, 4, &["unreadable", &removal, "frazil store repair"]);
    }
    fs::remove_file(&meta).unwrap();
    shell.fails(&["store", "init", "--workers", "3-4"], 4, &["frazil store repair"]);
    let repair = ["store", "repair", "--workers", "3-4", "--window", "5m", "--json"];
    let repaired = shell.output(&repair);
    assert!(repaired.status.success(), "{repaired:?}");
    assert!(stderr(&repaired).contains("created anew"), "{repaired:?}");
    let repaired: Value = serde_json::from_slice(&repaired.stdout).unwrap();
    assert_eq!(repaired["meta_created"], true);
    let meta = &shell.json_lines(&["store", "show", "--json"])[0]["meta"];
    assert_eq!((&meta["first_worker"], &meta["window_ms"]), (&3.into(), &300_000.into()));
    let ahead = meta["quarantine"].as_u64().unwrap() - meta["created"].as_u64().unwrap();
    assert!((300_000..400_000).contains(&ahead), "{ahead}");
    shell.fails(&["next"], 4, &["no worker before 20", "quarantine", "--patience"]);
}

#[test]
fn an_import_says_what_it_quarantined_and_what_is_poisoned_or_outside() {
    let (old, new) = (Shell::new(), Shell::new());
    let holding = holder(&old, &["--workers", "3-4"]);
    let export = old.output(&["store", "export"]);
    assert!(stderr(&export).contains("exported 1 record\n"), "{export:?}");
    end(holding, "-INT");
    let mut lines: Vec<Value> = str::from_utf8(&export.stdout)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let mut poisoned = lines[1].clone();
    poisoned["record"]["record"]["horizon"] = 4_000_000_000_000_u64.into();
    poisoned["record"]["name"] = if lines[1]["record"]["name"] == "3" { "4" } else { "3" }.into();
    let mut outside = lines[1].clone();
    outside["record"]["name"] = "9".into();
    lines.splice(2..2, [poisoned.clone(), outside]);
    lines[4]["end"]["records"] = 3.into();
    let file = new.home().join("export.jsonl");
    let text: Vec<_> = lines.iter().map(Value::to_string).collect();
    fs::write(&file, text.join("\n")).unwrap();
    let imported = new.output(&["store", "import", file.to_str().unwrap(), "--json"]);
    assert!(imported.status.success(), "{imported:?}");
    let said = stderr(&imported);
    let worker = poisoned["record"]["name"].as_str().unwrap();
    for text in [
        "imported 3 records",
        "no worker is used before 20",
        "held or lost",
        "1 record of workers outside the range 3 to 4",
        &format!("worker {worker} is poisoned, its horizon is 2096-"),
    ] {
        assert!(said.contains(text), "{text:?} in {said}");
    }
    let exported = new.output(&["store", "export"]);
    assert!(stderr(&exported).contains("outside the range 3 to 4"), "{exported:?}");
    let again = new.output(&["store", "repair"]);
    assert_eq!(again.status.code(), Some(1), "poisoned records are left: {again:?}");
}

#[test]
fn an_empty_variable_names_no_store_and_an_empty_flag_is_a_mistake() {
    let shell = Shell::new();
    for args in [&["next"][..], &["next", "--worker", "3"]] {
        let output = shell.command(args).env("FRAZIL_STORE", "").output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }
    assert!(shell.home().join("store").exists());
    shell.fails(&["next", "--store", ""], 2, &["scheme"]);
    let both = shell.command(&["next", "--worker", "3"]).env("FRAZIL_STORE", "file:x").output();
    assert_eq!(both.unwrap().status.code(), Some(2));
}

#[test]
fn a_relative_directory_is_relative_to_where_the_command_runs() {
    let shell = Shell::new();
    let issued = shell
        .command(&["next", "--store", "file:rel/dir"])
        .current_dir(shell.home())
        .output()
        .unwrap();
    assert!(issued.status.success(), "{issued:?}");
    let absolute = format!("file:{}/rel/dir", shell.home().display());
    assert_eq!(shell.json_lines(&["workers", "ls", "--json", "--store", &absolute]).len(), 1);
}

#[test]
fn memory_is_warned_about_and_adopting_is_for_directories() {
    let shell = Shell::new();
    let issued = shell.output(&["next", "--store", "memory:"]);
    assert!(issued.status.success() && stderr(&issued).contains("warning: memory:"), "{issued:?}");
    let adopt = ["store", "quarantine", "--adopt", "--store", "redis://127.0.0.1:1"];
    shell.fails(&adopt, 2, &["--adopt is for a copied directory"]);
}

#[test]
fn what_a_holder_calls_itself_cannot_steer_the_terminal() {
    let shell = Shell::new();
    shell.data(&["next", "--workers", "7-7"]);
    let record = shell.home().join("store/default/w/7");
    let mut value: Value = serde_json::from_slice(&fs::read(&record).unwrap()).unwrap();
    value["holder"] = "evil\u{202e}\u{1b}[2J".into();
    value["info"]["host"] = "h\u{200b}".into();
    fs::write(&record, value.to_string()).unwrap();
    let table = shell.data(&["workers", "ls", "--all"]);
    assert!(table.contains("evil\\u{202e}\\u{1b}[2J") && table.contains("h\\u{200b}"), "{table}");
    let line = table.lines().nth(1).unwrap();
    assert!(line.contains("free") && line.ends_with('-'), "nothing runs out: {line}");
}
