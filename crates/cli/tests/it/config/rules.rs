//! Values that do not go together.

use crate::desk::Desk;

/// Each file has one problem: where it is reported, and what it says.
const WRONG: &[(&str, &str, &str)] = &[
    ("[lease]\nttl = \"20s\"", "2:7: lease.ttl", "third of the TTL"),
    ("[lease]\nttl = \"1ms\"", "2:7: lease.ttl", "too short"),
    ("[lease]\noutage_budget = \"80s\"", "2:17: lease.outage_budget", "raise outage_budget"),
    ("[lease]\noutage_budget = \"2h\"", "2:17: lease.outage_budget", "lower outage_budget"),
    ("[node]\nworkers = \"0-5000\"", "2:11: node.workers", "the layout has 0 to 1023"),
    ("[node]\nworker = 1024", "2:10: node.worker", "the layout has 0 to 1023"),
    ("[node]\nlayout = \"tiem:1\"", "2:10: node.layout", "does not fit"),
    ("[node]\nworker = 1\nworkers = \"0-5\"", "2:10: node.worker", "only one"),
    ("[node]\nworker = 1\n[store]\nurl = \"memory:\"", "2:10: node.worker", "only one"),
    ("[node]\nworkers = \"0-5\"\n[store]\nurl = \"static:3\"", "4:7: store.url", "one worker"),
    ("[node]\nlanes = 2\nworker = 1", "2:9: node.lanes", "one lane"),
    ("[node]\nlanes = 65", "2:9: node.lanes", "1 to 64"),
    ("[node]\nscopes = [\"a b\"]", "2:10: node.scopes", "not a scope's name"),
    ("[node]\nscopes = [\"a\", \"a\"]", "2:10: node.scopes", "twice"),
    ("[node]\nscopes = [\"a\", 1]", "2:10: node.scopes", "a list of texts"),
    ("[node]\nscopes = [\"a=stict\"]", "2:10: node.scopes", "plain or name=strict"),
    ("[node]\nscopes = [\"a\", \"a=strict\"]", "2:10: node.scopes", "twice"),
    ("[node]\nscopes = [\"a=strict\"]\nworker = 1", "2:10: node.scopes", "all nodes share"),
    ("[node]\nscopes = [\"a=strict\"]\n[listen]\nhttp = \"off\"", "2:10: node.scopes", "reach"),
    ("[node]\nscopes = [\"a=strict\"]\n[auth]\nkeys = \"/k\"", "2:10: node.scopes", "--peer-key"),
    ("[election]\nttl = \"10ms\"", "2:7: election.ttl", "1s to 1h"),
    ("[store]\nurl = \"static:99999\"", "2:7: store.url", "the layout has"),
    ("[store]\nurl = \"mysql://x\"", "2:7: store.url", "mysql"),
    ("[store]\nurl = \"redis://h?timeout=20s\"", "2:7: store.url", "quarter of the TTL"),
    ("[store]\nurl = \"file:/x\"\npassword_file = \"/y\"", "3:17: store.password_file", "servers"),
    ("[store]\nnamespace = \"a b\"", "2:13: store.namespace", "does not fit"),
    ("[tls]\ncert = \"/x\"", "2:8: tls.cert", "set --tls-key"),
    ("[tls]\nkey = \"/x\"", "2:7: tls.key", "set --tls-cert"),
    ("[tls]\nclient_ca = \"/x\"", "2:13: tls.client_ca", "set --tls-cert and --tls-key"),
    ("[listen]\nhttp = \"0.0.0.0:80\"", "2:8: listen.http", "--insecure"),
    ("[listen]\nadmin = \"[::]:0\"", "2:9: listen.admin", "--insecure"),
    ("[listen]\ngrpc = \"127.0.0.1:7780\"", "2:8: listen.grpc", "taken by listen.http"),
    ("[listen]\nhttp = \"example.org:80\"", "2:8: listen.http", "127.0.0.1:7780"),
    ("[listen]\nhttp = \":80\"", "2:8: listen.http", "0.0.0.0:80 can be reached"),
    ("[listen]\nhttp = \"localhost:7781\"", "2:8: listen.http", "127.0.0.1:7781 is taken"),
    ("[listen]\ngrpc = \"7780\"", "2:8: listen.grpc", "127.0.0.1:7780 is taken"),
    (
        "[listen]\nhttp = \"off\"\ngrpc = \"off\"\nresp = \"off\"",
        "2:8: listen.http",
        "nobody could ask",
    ),
    ("[limits]\nmax_connections_per_peer = 10001", "2:28: limits.max_conn", "lower max_conn"),
    ("[limits]\nmax_uri_bytes = 16385", "2:17: limits.max_uri_bytes", "lower max_uri_bytes"),
    ("[limits]\nmax_head_bytes = 8191\nmax_uri_bytes = 1", "2:18: limits.max_head", "8192"),
    ("[limits]\nmax_count = 0", "2:13: limits.max_count", "does not fit"),
    ("[limits]\nmax_count = 1.5", "2:13: limits.max_count", "with a fraction"),
    ("[limits]\nidle_timeout = \"0s\"", "2:16: limits.idle_timeout", "1ms to 24h"),
    ("[clock]\nrollback = \"jump\"", "2:12: clock.rollback", "refuse or ride"),
    ("[log]\nlevel = \"loud\"", "2:9: log.level", "debug"),
    ("[log]\nformat = \"xml\"", "2:10: log.format", "text or json"),
    ("listen = 5", "1:1: listen", "write [listen]"),
    ("http = \"off\"", "1:1: http", "http in [listen]"),
];

#[test]
fn a_problem_names_the_other_keys_that_have_a_value_and_no_others() {
    let said = |text: &str| {
        let checked = Desk::with(text).output(&["config", "check", "--offline"]);
        String::from_utf8(checked.stdout).unwrap() + &String::from_utf8(checked.stderr).unwrap()
    };
    let unset = said("[tls]\ncert = \"/x\"\n");
    assert!(unset.contains("set --tls-key") && !unset.contains("[tls.key"), "{unset}");
    let set = said("[limits]\nmax_uri_bytes = 20000\n");
    assert!(set.contains("[limits.max_head_bytes: default]"), "{set}");
}

#[test]
fn values_that_do_not_go_together_are_reported_where_they_stand() {
    for (text, place, part) in WRONG {
        let desk = Desk::with(text);
        let (code, lines) = desk.check(&["--offline"]);
        assert_eq!((code, lines.len()), (Some(1), 1), "{text}: {lines:#?}");
        let start = format!("{}:{place}", desk.file().display());
        assert!(lines[0].starts_with(&start), "{text}: {start} in {}", lines[0]);
        assert!(lines[0].contains(part), "{text}: {part} in {}", lines[0]);
    }
}

#[test]
fn values_of_two_layers_that_do_not_go_together_name_both() {
    let desk = Desk::with("[store]\nurl = \"memory:\"\n");
    let (code, lines) = desk.check(&["--worker", "3"]);
    assert_eq!((code, lines.len()), (Some(1), 1));
    let file = desk.file().display().to_string();
    assert!(lines[0].starts_with("--worker: "), "{lines:?}");
    assert!(lines[0].ends_with(&format!("[store.url: {file}:2]")), "{lines:?}");
}

#[test]
fn a_guarded_listener_may_be_reached_by_others() {
    let guarded = "[listen]\nhttp = \"0.0.0.0:80\"\n[tls]\ncert = \"/c\"\nkey = \"/k\"\n";
    let (code, _) = Desk::with(guarded).check(&["--offline"]);
    assert_eq!(code, Some(1), "TLS alone keeps nobody out");
    let keys = format!("{guarded}[auth]\nkeys = \"/keys\"\n");
    assert_eq!(Desk::with(&keys).check(&["--offline"]).0, Some(0));
    assert_eq!(Desk::with(guarded).check(&["--offline", "--insecure"]).0, Some(0));
}

#[test]
fn fewer_connections_are_also_fewer_of_one_peer() {
    let desk = Desk::with("[limits]\nmax_connections = 5\n");
    assert_eq!(desk.check(&[]).0, Some(0));
    let of_one = desk.setting("limits.max_connections_per_peer", &[]);
    assert_eq!(of_one, (5.into(), "default".to_owned()));
}

#[test]
fn files_that_are_named_must_be_there() {
    let desk = Desk::new();
    let path = |name: &str| desk.home().join(name).display().to_string();
    let (cert, directory, nowhere) = (path("cert"), path("directory"), path("nowhere"));
    std::fs::write(&cert, "x").unwrap();
    std::fs::create_dir(&directory).unwrap();
    desk.write(&format!(
        "[tls]\ncert = \"{cert}\"\nkey = \"{directory}\"\nclient_ca = \"{nowhere}\"\n[auth]\n\
         keys = \"{nowhere}\"\n[store]\nurl = \"redis://h\"\npassword_file = \"{nowhere}\"\n"
    ));
    let (code, lines) = desk.check(&[]);
    assert_eq!((code, lines.len()), (Some(1), 4), "{lines:#?}");
    for (line, part) in lines.iter().zip(["directory", "nowhere", "nowhere", "nowhere"]) {
        assert!(line.contains(part), "{line}");
    }
    assert!(lines[3].contains(":9:17: store.password_file"), "{lines:#?}");
    assert_eq!(desk.check(&["--offline"]).0, Some(0));
    assert_eq!(desk.output(&["serve"]).status.code(), Some(2));
    let flag = ["--store", &format!("rediss://h?ca={nowhere}"), "--store-password-file", &cert];
    let (_, lines) = Desk::new().check(&flag);
    assert!(lines.len() == 1 && lines[0].starts_with("--store: ca: "), "{lines:?}");
}
