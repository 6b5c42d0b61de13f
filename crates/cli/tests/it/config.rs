//! The configuration as an operator sees it: layers, problems, secrets.

mod fuzz;
mod rules;

use crate::desk::Desk;
use crate::serving::Served;

#[test]
fn flags_count_for_more_than_the_environment_the_file_and_the_defaults() {
    let ttl = |desk: &Desk, flags: &[&str]| desk.setting("lease.ttl", flags);
    let bare = Desk::new();
    assert_eq!(ttl(&bare, &[]), ("30s".into(), "default".to_owned()));
    let desk = Desk::with("[lease]\nttl = \"31s\"\n");
    let file = format!("{}:2", desk.file().display());
    assert_eq!(ttl(&desk, &[]), ("31s".into(), file));
    let desk = desk.env("FRAZIL_TTL", "32s");
    assert_eq!(ttl(&desk, &[]), ("32s".into(), "environment FRAZIL_TTL".to_owned()));
    assert_eq!(ttl(&desk, &["--ttl", "33s"]), ("33s".into(), "flag --ttl".to_owned()));
    let desk = desk.env("FRAZIL_TTL", "");
    assert_eq!(ttl(&desk, &[]).0, "31s", "an empty variable sets nothing");
}

#[test]
fn the_flag_names_another_file_than_the_variable() {
    let desk = Desk::with("[node]\nname = \"variable\"\n");
    let other = desk.home().join("other.toml");
    std::fs::write(&other, "[node]\nname = \"flag\"\n").unwrap();
    let name = |flags: &[&str]| desk.setting("node.name", flags).0;
    assert_eq!(name(&[]), "variable");
    assert_eq!(name(&["--config", other.to_str().unwrap()]), "flag");
}

#[test]
fn every_kind_of_value_passes_all_layers() {
    let text = "[node]\nlanes = \"auto\"\nscopes = [\"a\", \"b\"]\n[listen]\ninsecure = true\n\
                [limits]\nmax_headers = 0x20\nresp_idle_timeout = \"0s\"\n[auth]\nopen_metrics = true\n";
    let desk = Desk::with(text);
    let value = |desk: &Desk, key: &str, flags: &[&str]| desk.setting(key, flags).0;
    assert_eq!(value(&desk, "node.lanes", &[]), "auto");
    assert_eq!(value(&desk, "node.lanes", &["--lanes", "3"]), 3);
    assert_eq!(value(&desk, "node.scopes", &[]), serde_json::json!(["a", "b"]));
    assert_eq!(value(&desk, "node.scopes", &["--scope", "c"]), serde_json::json!(["c"]));
    assert_eq!(value(&desk, "limits.max_headers", &[]), 32);
    assert_eq!(value(&desk, "limits.resp_idle_timeout", &[]), "0s");
    assert_eq!(value(&desk, "listen.insecure", &[]), true);
    assert_eq!(value(&desk, "listen.insecure", &["--insecure=false"]), false);
    assert_eq!(value(&Desk::new(), "listen.insecure", &["--insecure"]), true);
    let desk = desk.env("FRAZIL_INSECURE", "no").env("FRAZIL_SCOPES", "x,y");
    assert_eq!(value(&desk, "listen.insecure", &[]), false);
    assert_eq!(value(&desk, "node.scopes", &[]), serde_json::json!(["x", "y"]));
}

#[test]
fn a_server_does_what_its_file_says() {
    let desk = Desk::with("[limits]\nmax_count = 7\n[node]\nname = \"from the file\"\n");
    let served = Served::dev(&["--config", desk.file().to_str().unwrap()]);
    assert_eq!(served.request("POST", "/ids?count=7").0, 200);
    assert_eq!(served.request("POST", "/ids?count=8").0, 400);
    assert!(served.request("GET", "/v1/info").1.contains("from the file"));
}

#[test]
fn all_mistakes_of_a_file_are_reported_at_once_each_with_its_line() {
    let desk = Desk::with(
        "[listen]\nhttp = 7780\ngrcp = \"127.0.0.1:1\"\n\n[lease]\nttl = \"30s\"\n\
         heartbeat = \"20s\"\noutage_budget = \"ten minutes\"\n\n[lesase]\nttl = \"1s\"\n",
    );
    let desk = desk.env("FRAZIL_LANES", "many").env("FRAZIL_MAX_COUNT", "-1");
    let (code, lines) = desk.check(&[]);
    let file = desk.file().display().to_string();
    let expected = [
        (format!("{file}:2:8: listen.http: "), "expected a text in quotes"),
        (format!("{file}:3:1: listen.grcp: "), "did you mean grpc?"),
        (format!("{file}:7:13: lease.heartbeat: "), "a third of the TTL"),
        (format!("{file}:8:17: lease.outage_budget: "), "write whole numbers with ms, s, m or h"),
        (format!("{file}:10:2: lesase: "), "did you mean [lease]?"),
        ("FRAZIL_LANES in the environment: node.lanes: ".to_owned(), "1 to 64, or auto"),
        ("FRAZIL_MAX_COUNT in the environment: ".to_owned(), "write a whole number"),
    ];
    assert_eq!((code, lines.len()), (Some(1), expected.len()), "{lines:#?}");
    for (line, (start, part)) in lines.iter().zip(&expected) {
        assert!(line.starts_with(start) && line.contains(part), "{start}...{part}: {line}");
    }
    assert!(lines[2].contains("[lease.ttl: ") && lines[2].contains(":6]"), "{}", lines[2]);
    let output = desk.output(&["config", "check", "--json"]);
    let stdout = String::from_utf8(output.stdout).unwrap();
    let objects: Vec<serde_json::Value> =
        stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((output.status.code(), objects.len()), (Some(1), expected.len()));
    assert_eq!((&objects[2]["line"], &objects[2]["key"]), (&7.into(), &"lease.heartbeat".into()));
    let serve = desk.output(&["serve"]);
    let said = String::from_utf8(serve.stderr).unwrap();
    assert_eq!((serve.status.code(), said.lines().count()), (Some(2), expected.len()), "{said}");
    assert!(said.lines().all(|line| line.starts_with("error: ")), "{said}");
}

#[test]
fn a_key_that_stands_twice_and_a_broken_line_are_reported_where_they_stand() {
    let twice = Desk::with("[lease]\nttl = \"30s\"\nttl = \"31s\"\nheartbeet = \"1s\"\n");
    let (code, lines) = twice.check(&[]);
    assert_eq!((code, lines.len()), (Some(1), 2), "{lines:?}");
    assert!(lines[0].contains("frazil.toml:3:1: duplicate key"), "{lines:?}");
    assert!(lines[1].contains(":4:1: lease.heartbeet"), "{lines:?}");
    let broken = Desk::with("[lease]\nttl = \n[store]\nurl = \"redis://:hunter2@h\n");
    let (code, lines) = broken.check(&[]);
    assert_eq!(code, Some(1));
    assert!(lines[0].contains("frazil.toml:2:") && lines[0].contains("not TOML"), "{lines:?}");
    assert!(lines[1].contains("frazil.toml:4:") && !lines[1].contains("hunter2"), "{lines:?}");
}

#[test]
fn what_is_no_configuration_file_is_exit_code_2() {
    let desk = Desk::new();
    let path = |name: &str| desk.home().join(name).to_str().unwrap().to_owned();
    std::fs::create_dir(path("directory")).unwrap();
    std::fs::write(path("binary"), [0x80, 0xff, b'\n']).unwrap();
    std::fs::write(path("huge"), vec![b'#'; (1 << 20) + 1]).unwrap();
    for (name, part) in [
        ("directory", "is a directory"),
        ("nowhere", "cannot be opened"),
        ("binary", "not UTF-8"),
        ("huge", "longer than 1048576 bytes"),
    ] {
        for command in [&["config", "check"][..], &["config", "show"], &["serve"]] {
            let output = desk.output(&[command, &["--config", &path(name)]].concat());
            let said = str::from_utf8(&output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(2), "{name}: {said}");
            assert!(said.contains(part) && said.contains(name), "{name}: {said}");
        }
    }
}

#[test]
fn what_is_shown_is_a_file_with_the_same_values() {
    let desk = Desk::with("[node]\nname = \"a\\\\b \\\"c\\\"\"\nscopes = [\"x\", \"y\"]\n");
    let shown = desk.data(&["config", "show", "--ttl", "40s", "--origin"]);
    let file = desk.file().display().to_string();
    for line in [
        "ttl = \"40s\" # flag --ttl".to_owned(),
        "heartbeat = \"10s\" # default".to_owned(),
        format!("scopes = [\"x\", \"y\"] # {file}:3"),
        "# region is not set".to_owned(),
    ] {
        assert!(shown.lines().any(|shown| shown == line), "{line} in {shown}");
    }
    let copy = Desk::with(&shown);
    let (code, lines) = copy.check(&[]);
    assert_eq!((code, lines), (Some(0), vec!["ok".to_owned()]));
    let bare = |desk: &Desk, flags: &[&str]| desk.data(&[&["config", "show"][..], flags].concat());
    assert_eq!(bare(&copy, &[]), bare(&desk, &["--ttl", "40s"]));
}

#[test]
fn the_example_has_every_key_and_passes_as_it_is_and_with_all_keys_set() {
    let desk = Desk::new();
    let example = desk.data(&["config", "example"]);
    let shown = desk.data(&["config", "show", "--json"]);
    for line in shown.lines() {
        let object: serde_json::Value = serde_json::from_str(line).unwrap();
        let (section, name) = object["key"].as_str().unwrap().split_once('.').unwrap();
        let (_, after) = example.split_once(&format!("\n[{section}]\n")).unwrap();
        let keys = after.split("\n[").next().unwrap();
        assert!(keys.contains(&format!("# {name} = ")), "{section}.{name}");
    }
    let passes = |text: &str| {
        desk.write(text);
        let (code, lines) = desk.check(&["--offline"]);
        assert_eq!((code, lines), (Some(0), vec!["ok".to_owned()]), "{text}");
    };
    passes(&example);
    let is_key = |line: &str| line.contains(" = ") && !line.starts_with("#  ");
    let with = |mark: &str| -> String {
        let uncommented = |line: &str| match line.strip_prefix(mark) {
            Some(key) if is_key(line) => format!("{key}\n"),
            _ => format!("{line}\n"),
        };
        example.lines().map(uncommented).collect()
    };
    passes(&with("# "));
    assert!(with("# ").contains("\nmax_count = 100000\n"));
    passes(&with("## "));
    assert!(with("## ").contains("\nworker = 7\n"));
}

#[test]
fn no_output_has_a_secret() {
    const SECRET: &str = "hunter2";
    let url = format!("redis://app:{SECRET}@127.0.0.1:1");
    let file = |text: &str| format!("[store]\n{text}\n");
    let desks = [
        Desk::with(&file(&format!("url = \"{url}\""))),
        Desk::with(&file(&format!("url = \"redis://{SECRET}@\""))),
        Desk::with(&file(&format!("url = [\"{url}\"]"))),
        Desk::with(&file(&format!("url = \"{url}"))),
        Desk::with(&file(&format!("url = \"{url}\"\nurl = \"{url}\""))),
        Desk::with(&file(&format!("url = \"{url}?timeout=1h\"\n[node]\nworker = 1"))),
        Desk::with(SECRET),
        Desk::new().env("FRAZIL_STORE", &url),
        Desk::new().env("FRAZIL_STORE", &format!("nothing://{SECRET}@h")),
        Desk::new().env("FRAZIL_STORE_PASSWORD", SECRET).env("FRAZIL_STORE", "redis://127.0.0.1:1"),
    ];
    for desk in &desks {
        let password = desk.home().join("password");
        std::fs::write(&password, SECRET).unwrap();
        let password = password.to_str().unwrap();
        for flags in [
            &[][..],
            &["--store-password-file", password],
            &["--heartbeat", "29s"],
            &["--worker", "70000"],
        ] {
            for command in [
                &["config", "check"][..],
                &["config", "check", "--json"],
                &["config", "show", "--origin"],
                &["config", "show", "--json"],
            ] {
                let output = desk.output(&[command, flags].concat());
                for stream in [&output.stdout, &output.stderr] {
                    let text = str::from_utf8(stream).unwrap();
                    assert!(!text.contains(SECRET), "{command:?} {flags:?}: {text}");
                }
            }
        }
    }
    assert_eq!(desks[0].setting("store.url", &[]).0, "redis://app:***@127.0.0.1:1");
    assert_eq!(desks[7].setting("store.url", &[]).0, "redis://app:***@127.0.0.1:1");
    let serve = desks[1].output(&["serve"]);
    let said = String::from_utf8(serve.stderr).unwrap();
    assert!(serve.status.code() == Some(2) && !said.contains(SECRET), "{said}");
}

#[test]
fn a_throw_away_server_ignores_store_and_ports_of_the_environment_and_the_file() {
    let desk = Desk::with("[listen]\nresp = \"127.0.0.1:1\"\nadmin = \"127.0.0.1:2\"\n")
        .env("FRAZIL_STORE", "redis://127.0.0.1:1")
        .env("FRAZIL_HTTP", "127.0.0.1:1")
        .env("FRAZIL_WORKER", "5");
    let flags = ["--dev"];
    assert_eq!(desk.check(&flags), (Some(0), vec!["ok".to_owned()]));
    for (key, value) in [
        ("listen.http", "127.0.0.1:0".into()),
        ("listen.resp", "127.0.0.1:0".into()),
        ("listen.admin", "off".into()),
        ("store.url", serde_json::Value::Null),
        ("node.worker", serde_json::Value::Null),
        ("drain.delay", "0s".into()),
    ] {
        assert_eq!(desk.setting(key, &flags).0, value, "{key}");
    }
    for flag in [["--store", "memory:"], ["--http", "127.0.0.1:0"], ["--worker", "1"]] {
        let output = desk.output(&[&["serve", "--dev"][..], &flag].concat());
        let said = str::from_utf8(&output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(flag[0]) && said.contains("--dev"), "{said}");
    }
}

#[test]
fn the_help_of_a_server_fits_on_two_screens_and_the_rest_is_told_by_help() {
    let desk = Desk::new();
    let (short, long) = (desk.data(&["serve", "--help"]), desk.data(&["help", "serve"]));
    assert!(!short.contains("Limits:"), "a heading with nothing of its own below it: {short}");
    assert_eq!(desk.data(&["serve", "-h"]), short);
    assert!(short.lines().count() <= 100, "{} lines", short.lines().count());
    assert!(short.contains("--ttl") && !short.contains("--max-pipeline"), "{short}");
    assert!(long.contains("Limits:") && long.contains("--max-pipeline"), "{long}");
    assert!(long.contains("[env: FRAZIL_MAX_PIPELINE=]"), "{long}");
    for command in ["check", "show", "example"] {
        let help = desk.data(&["config", command, "--help"]);
        assert!(help.contains(&format!("  frazil config {command}")), "{help}");
    }
}
