//! `frazil serve` as an operator sees it.

use std::collections::BTreeSet;
use std::process::Command;
use std::time::Duration;

use crate::serving::Served;
use crate::shell::Shell;
use frazil_id::{Id, Layout};
use frazil_rig::{Etcd, FalseClock, Redis, wait_until};
use serde_json::Value;

#[test]
fn it_issues_over_its_curl_line_and_releases_its_worker_at_the_end() {
    let shell = Shell::new();
    let store = format!("file:{}", shell.home().join("store").display());
    let mut served = Served::start(&["--store", &store, "--node", "n1"]);
    let line = served.line_with("ready; try: curl");
    let words: Vec<&str> = line.split("try: ").nth(1).unwrap().split(' ').collect();
    let curl = Command::new(words[0]).args(&words[1..]).arg("-s").output().unwrap();
    let reply: Value = serde_json::from_slice(&curl.stdout).unwrap();
    assert_eq!((&reply["count"], reply["ids"].as_array().unwrap().len()), (&1.into(), 1));
    let (status, body) = served.request("POST", "/ids?count=1000");
    let reply: Value = serde_json::from_str(&body).unwrap();
    assert_eq!((status, reply["ids"].as_array().unwrap().len()), (200, 1000));
    let held = &shell.json_lines(&["workers", "ls", "--store", &store, "--json"])[0];
    assert_eq!((&held["state"], &held["holder"]), (&"held".into(), &"n1".into()));
    assert_eq!(served.stop().code(), Some(0));
    let free = &shell.json_lines(&["workers", "ls", "--store", &store, "--json"])[0];
    assert_eq!((&free["state"], &free["worker"]), (&"free".into(), &held["worker"]));
}

#[test]
fn a_second_signal_ends_it_at_once() {
    let shell = Shell::new();
    let store = format!("file:{}", shell.home().join("store").display());
    let mut served = Served::start(&["--store", &store, "--drain-delay", "1h"]);
    served.wait_until_ready();
    served.signal("-INT");
    served.line_with("the node is draining");
    assert_eq!(served.request("GET", "/readyz").0, 503);
    assert_eq!(served.request("POST", "/ids").0, 200, "it still issues while balancers look");
    // What comes right after the first is taken for its echo.
    assert_eq!(served.insist("-TERM").code(), Some(143));
}

#[test]
fn next_asks_a_server() {
    let served = Served::dev(&["--scope", "orders"]);
    let shell = Shell::new();
    let url = format!("http://{}", served.http);
    let ids = shell.data(&["next", "-n", "10000", "--server", &url]);
    let ids: Vec<u64> = ids.lines().map(|line| line.parse().unwrap()).collect();
    assert_eq!(ids.len(), 10_000);
    assert!(ids.is_sorted_by(|one, other| one < other));
    let scoped = ["next", "--json", "--scope", "orders", "--server", &url];
    let issued = &shell.json_lines(&scoped)[0];
    assert!(issued["token"].is_string() && issued["worker"].is_u64(), "{issued}");
    shell.fails(&["next", "--scope", "x", "--server", &url], 2, &["NOT_FOUND", "declared"]);
    shell.fails(&["next", "--server", "http://127.0.0.1:1"], 3, &["frazil serve"]);
    shell.fails(&["next", "--server", "127.0.0.1:1"], 2, &["http://HOST:PORT"]);
}

#[test]
fn what_makes_no_sense_is_refused_before_anything_starts() {
    let shell = Shell::new();
    for (args, code, text) in [
        (&["--http", "0.0.0.0:0"][..], 2, "--insecure"),
        (&["--http", "localhost"], 2, "127.0.0.1:7780"),
        (&["--lanes", "0"], 2, "1 to 64"),
        (&["--lanes", "many"], 2, "1 to 64"),
        (&["--heartbeat", "20s", "--http", "off"], 2, "heartbeat"),
        (&["--scope", "a b"], 2, "scope"),
        (&["--store", "mysql://x"], 2, "mysql"),
        (&["--max-count", "0"], 2, "max-count"),
    ] {
        let off = ["serve", "--grpc", "off", "--resp", "off"];
        shell.fails(&[&off[..], args].concat(), code, &[text]);
    }
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let args = ["serve", "--grpc", "off", "--resp", "off", "--http", &address];
    shell.fails(&args, 3, &[&address, "port 0"]);
}

/// A batch of a server, with the status and the body where it is not there.
fn batch(served: &Served) -> Result<Vec<u64>, (u16, Value)> {
    let (status, body) = served.request("POST", "/ids?count=10");
    let reply: Value = serde_json::from_str(&body).unwrap();
    let ids = reply["ids"].as_array().ok_or((status, reply.clone()))?;
    Ok(ids.iter().map(|id| id.as_str().unwrap().parse().unwrap()).collect())
}

/// Neither the jump nor its end, which is no step back of what was issued.
#[test]
fn a_clock_that_jumps_an_hour_ahead_and_comes_back_costs_no_request() {
    let clock = FalseClock::new().unwrap();
    let served = Served::by_clock(&clock, &[]);
    let issue = || {
        let (status, body) = served.request("POST", "/ids");
        assert_eq!(status, 200, "{body}");
        let reply: Value = serde_json::from_str(&body).unwrap();
        reply["ids"][0].as_str().unwrap().parse::<u64>().unwrap()
    };
    let before = issue();
    clock.set_ahead(Duration::from_secs(3600)).unwrap();
    let during = issue();
    clock.set_right().unwrap();
    let after = issue();
    assert!(before < during && during < after, "{before}, {during}, {after}");
    // Not from the future: an hour would be 3,600,000 ticks.
    let ticks = (after - before) >> 22;
    assert!(ticks < 1_800_000, "{ticks} ms passed");
}

/// A clock that is 5 s slow.
fn slow_clock() -> FalseClock {
    let clock = FalseClock::new().unwrap();
    clock.set_back(Duration::from_secs(5)).unwrap();
    clock
}

/// A node on a Redis that has renewed by its slow clock.
fn slow_on_redis(redis: &Redis, clock: &FalseClock) -> Served {
    let (shell, store) = (Shell::new(), redis.url());
    let init = shell.output(&["store", "init", "--store", &store]);
    assert!(init.status.success(), "{init:?}");
    let lease = ["--ttl", "2s", "--heartbeat", "500ms", "--outage-budget", "60s"];
    let mut served = Served::start_by(clock, &[&["--store", &store][..], &lease].concat());
    served.wait_until_ready();
    wait_for_renewals(&served, 1);
    assert!(lag_ms(&served) > 3000);
    served
}

/// How far the time of a new ID is behind the machine's clock.
fn lag_ms(served: &Served) -> i64 {
    let id = Id::from_u64(batch(served).unwrap()[0]);
    let tick = id.parts(&Layout::FRAZIL).unwrap().tick;
    frazil_coord::internal::time::unix_ms().cast_signed()
        - Layout::FRAZIL.unix_ms(tick).cast_signed()
}

fn renewals(served: &Served) -> u64 {
    let (_, page) = served.request("GET", "/metrics");
    let line = page.lines().find(|l| l.starts_with("frazil_lease_renewals_total{result=\"done\"}"));
    line.unwrap().rsplit(' ').next().unwrap().parse().unwrap()
}

fn wait_for_renewals(served: &Served, count: u64) {
    let before = renewals(served);
    wait_until("renewals", Duration::from_secs(60), || renewals(served) >= before + count).unwrap();
}

#[test]
fn a_slow_clock_that_is_set_right_is_followed_as_soon_as_the_stores_clock_confirms_it() {
    let (redis, clock) = (Redis::start().unwrap(), slow_clock());
    let served = slow_on_redis(&redis, &clock);
    clock.set_right().unwrap();
    // Without the store it would take a minute from here.
    wait_until("the IDs to be of now", Duration::from_secs(40), || lag_ms(&served) < 2000).unwrap();
}

/// The control: a store with the same clock cannot know better.
#[test]
fn a_clock_that_jumps_together_with_the_stores_is_not_followed_at_once() {
    let clock = slow_clock();
    let redis = Redis::builder().clock(&clock).start().unwrap();
    let served = slow_on_redis(&redis, &clock);
    clock.set_right().unwrap();
    wait_for_renewals(&served, 4);
    let lag = lag_ms(&served);
    assert!(lag > 3000, "{lag} ms");
}

#[test]
fn a_node_in_the_last_day_of_its_layout_says_that_time_is_exhausted() {
    let clock = FalseClock::new().unwrap();
    let now = frazil_coord::internal::time::unix_ms().cast_signed();
    let end = Layout::FRAZIL.unix_ms((1 << Layout::FRAZIL.time_bits()) - 1).cast_signed();
    let hour_before = end - 3_600_000 - now;
    clock.set(hour_before * 1_000_000).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let store = format!("file:{}", directory.path().display());
    let served = Served::start_by(&clock, &["--store", &store]);
    let mut answer = (0, String::new());
    wait_until("the node to say why it issues nothing", Duration::from_secs(60), || {
        answer = served.request("POST", "/ids");
        !answer.1.contains("\"NO_WORKER\"")
    })
    .unwrap();
    let problem: Value = serde_json::from_str(&answer.1).unwrap();
    assert_eq!((answer.0, problem["reason"].as_str()), (500, Some("TIME_EXHAUSTED")), "{problem}");
    assert!(problem["detail"].as_str().unwrap().contains("the layout ends in"), "{problem}");
}

/// Below 5 ms a step back is waited out; above, nothing is issued until the clock is right, and
/// then everything again. IDs keep increasing all the while.
#[test]
fn a_clock_that_steps_back_is_waited_for_or_refused_and_recovered_from() {
    let clock = FalseClock::new().unwrap();
    let served = Served::by_clock(&clock, &[]);
    let mut all = batch(&served).unwrap();
    for _ in 0..20 {
        clock.set_back(Duration::from_millis(3)).unwrap();
        all.extend(batch(&served).unwrap());
        clock.set_right().unwrap();
        all.extend(batch(&served).unwrap());
    }
    clock.set_back(Duration::from_secs(30)).unwrap();
    let (status, problem) = batch(&served).unwrap_err();
    assert_eq!((status, &problem["reason"]), (503, &"CLOCK_MOVED_BACKWARDS".into()));
    let wait = problem["retry_after_ms"].as_u64().unwrap();
    assert!((20_000..=31_000).contains(&wait), "{wait}");
    assert_eq!(served.request("GET", "/readyz").0, 503);
    assert_eq!(served.request("GET", "/livez").0, 200);
    clock.set_right().unwrap();
    all.extend(batch(&served).unwrap());
    assert_eq!(served.request("GET", "/readyz").0, 200);
    assert!(all.is_sorted_by(|one, other| one < other));
}

#[test]
fn a_node_that_rides_goes_on_when_the_clock_steps_back() {
    let clock = FalseClock::new().unwrap();
    let served = Served::by_clock(&clock, &["--rollback", "ride"]);
    let mut all = batch(&served).unwrap();
    clock.set_back(Duration::from_secs(30)).unwrap();
    for _ in 0..20 {
        all.extend(batch(&served).unwrap());
    }
    assert_eq!(served.request("GET", "/readyz").0, 200);
    clock.set_right().unwrap();
    all.extend(batch(&served).unwrap());
    assert!(all.is_sorted_by(|one, other| one < other));
}

/// One of three nodes dies without a word; the others go on, and a client sees nothing.
#[test]
fn three_nodes_on_one_etcd_and_one_is_killed() {
    let etcd = Etcd::start().unwrap();
    let shell = Shell::new();
    let store = etcd.url();
    let init = shell.output(&["store", "init", "--store", &store]);
    assert!(init.status.success(), "{init:?}");
    let mut nodes: Vec<Served> = ["a", "b", "c"]
        .iter()
        .map(|name| Served::start(&["--store", &store, "--node", name]))
        .collect();
    nodes.iter_mut().for_each(Served::wait_until_ready);
    let (_, body) = nodes[0].request("GET", "/v1/cluster");
    let cluster: Value = serde_json::from_str(&body).unwrap();
    let names: Vec<&str> =
        cluster["nodes"].as_array().unwrap().iter().map(|n| n["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["a", "b", "c"]);
    let mut ids = BTreeSet::new();
    let mut issue = |node: &Served| {
        let (status, body) = node.request("POST", "/ids?count=100");
        let reply: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(status, 200, "{body}");
        for id in reply["ids"].as_array().unwrap() {
            assert!(ids.insert(id.as_str().unwrap().to_owned()), "{id} twice");
        }
    };
    nodes.iter().for_each(&mut issue);
    nodes[1].signal("-KILL");
    nodes[1].wait();
    let others = [&nodes[0], &nodes[2]];
    let before = others.map(renewals);
    wait_until("both others to renew", Duration::from_secs(60), || {
        others.into_iter().for_each(&mut issue);
        others.iter().all(|node| node.request("GET", "/readyz").0 == 200)
            && others.iter().zip(before).all(|(node, before)| renewals(node) > before)
    })
    .unwrap();
    for node in [0, 2] {
        assert_eq!(nodes[node].stop().code(), Some(0));
    }
}
