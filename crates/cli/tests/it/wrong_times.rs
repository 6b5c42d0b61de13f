//! A namespace whose first node had a clock a year ahead: who says so, and the command that repairs it.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::serving::Served;
use crate::shell::Shell;
use frazil_coord::Copied;
use frazil_coord::internal::Leasing;
use frazil_coord::internal::time::{boot_time, unix_ms};
use frazil_coord::{Meta, Namespace, Put};
use frazil_rig::{AppendOnly, Etcd, FalseClock, Redis, ZooKeeper, wait_until};

const YEAR: Duration = Duration::from_hours(365 * 24);
const YEAR_MS: u64 = 365 * 86_400_000;
/// Within which a namespace is to be of use again.
const SOON: Duration = Duration::from_secs(60);
/// Longer than a TTL, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
const LEASE: [&str; 6] = ["--ttl", "3s", "--heartbeat", "500ms", "--outage-budget", "10s"];

/// The IDs that a server issues, as lines.
fn ids(served: &Served) -> String {
    let (status, body) = served.request("POST", "/ids?count=1000");
    assert_eq!(status, 200, "{body}");
    let reply: serde_json::Value = serde_json::from_str(&body).unwrap();
    let ids = reply["ids"].as_array().unwrap().iter();
    ids.map(|id| format!("{}\n", id.as_str().unwrap())).collect()
}

/// The first node's clock is a year ahead. It issues, and is killed.
fn is_of_use_again(url: &str) {
    let shell = Shell::new();
    let args = [&["--store", url][..], &LEASE].concat();
    let clock = FalseClock::new().unwrap();
    clock.set_ahead(YEAR).unwrap();
    let mut astray = Served::start_by(&clock, &args);
    astray.wait_until_ready();
    let early = ids(&astray);

    let command = format!("frazil store repair --wrong-times --store '{url}' --namespace default");
    let mut right = Served::start(&args);
    let said = right.line_with("plainly wrong");
    // A node on a server has a time-out of its own, which its URL says.
    let begins = command.split_once("' --name").unwrap().0;
    assert!(said.contains("365 days") && said.contains(begins), "{said}");
    let mut ready = (0, String::new());
    let is_named = || {
        ready = right.request("GET", "/readyz?verbose");
        ready.1.contains("plainly wrong") && ready.1.contains(begins)
    };
    let named = wait_until("the wrong time to be named", PATIENCE, is_named);
    assert!(named.is_ok() && ready.0 == 503, "{ready:?}");
    let at = ["--store", url];
    shell.fails(&[&["next"][..], &at].concat(), 4, &["plainly wrong", &command]);
    let shown = shell.data(&[&["store", "show"][..], &at].concat());
    assert!(shown.contains("plainly wrong") && shown.contains(&command), "{shown}");

    let repair = [&["store", "repair", "--wrong-times", "--json"][..], &at].concat();
    shell.fails(&repair, 4, &["nothing was changed", "worker "]);
    astray.insist("-KILL");
    let mut repaired = None;
    wait_until("the presence of the first node to end", PATIENCE, || {
        repaired = Some(shell.output(&repair)).filter(|output| output.status.success());
        repaired.is_some()
    })
    .unwrap();
    let (repaired, began) = (repaired.unwrap(), boot_time());
    let told = String::from_utf8(repaired.stderr).unwrap();
    assert!(told.contains("stays out of use until"), "{told}");
    let report: serde_json::Value = serde_json::from_slice(&repaired.stdout).unwrap();
    assert!(report["quarantine_before_ms"].as_u64().unwrap() > unix_ms() + YEAR_MS - 600_000);
    assert!(report["quarantine_ms"].as_u64().unwrap() < unix_ms() + 60_000, "{report}");
    right.wait_until_ready();
    let took = boot_time() - began;
    assert!(took < SOON, "{took:?} on {url}");

    let late = ids(&right) + &shell.data(&[&["next", "-n", "1000"][..], &at].concat());
    let worker = |id: &str| id.parse::<u64>().unwrap() >> 12 & 1023;
    let workers = |ids: &str| ids.lines().map(worker).collect::<BTreeSet<_>>();
    assert!(workers(&early).is_disjoint(&workers(&late)), "a worker that must stay out is in use");
    let file = shell.home().join("ids");
    std::fs::write(&file, early.clone() + &late).unwrap();
    let audit = shell.output(&["audit", file.to_str().unwrap()]);
    let audited = String::from_utf8_lossy(&audit.stdout).into_owned();
    assert_eq!(audit.status.code(), Some(0), "{audited} {audit:?}");
    let poisoned = shell.json_lines(&[&["workers", "ls", "--json"][..], &at].concat());
    let poisoned: BTreeSet<_> = poisoned
        .iter()
        .filter(|worker| worker["state"] == "poisoned")
        .map(|worker| worker["worker"].as_u64().unwrap())
        .collect();
    assert_eq!(poisoned, workers(&early));
    // Nothing is left to do.
    let again = shell.output(&repair);
    assert!(again.status.success(), "{again:?}");
    let told = String::from_utf8(again.stderr).unwrap();
    assert!(told.contains("nothing was changed"), "{told}");
}

#[test]
fn a_directory_that_a_clock_a_year_ahead_began_is_of_use_again() {
    let home = tempfile::tempdir().unwrap();
    is_of_use_again(&format!("file:{}", home.path().display()));
}

#[test]
fn an_etcd_that_a_clock_a_year_ahead_began_is_of_use_again() {
    is_of_use_again(&Etcd::start().unwrap().url());
}

/// Where the store has a clock nobody is let in whose clock differs; but that clock may have been
/// wrong. The namespace then looks like this.
fn comes_down(url: &str) {
    let shell = Shell::new();
    let at = ["--store", url];
    shell.data(&[&["store", "init"][..], &at].concat());
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let (url, namespace) = (url.parse().unwrap(), Namespace::default());
        let store = frazil_coord::open(&url, &namespace, Copied::Refuse).await.unwrap();
        let meta = store.meta().await.unwrap().unwrap();
        let wrong = unix_ms() + YEAR_MS;
        let wrong = Meta { created: wrong, quarantine: wrong, ..meta.value };
        let put = store.put_meta(Some(meta.version), &wrong).await.unwrap();
        assert!(matches!(put, Put::Done(_)));
    });
    shell.fails(&[&["next"][..], &at].concat(), 4, &["plainly wrong", "--wrong-times"]);
    shell.fails(&[&["store", "repair"][..], &at].concat(), 1, &["plainly wrong", "--wrong-times"]);
    let repair = ["store", "repair", "--wrong-times"];
    let repaired = shell.output(&[&repair[..], &at].concat());
    assert!(repaired.status.success(), "{repaired:?}");
    let began = boot_time();
    let next = shell.output(&[&["next", "--patience", "60s"][..], &at].concat());
    let took = boot_time() - began;
    assert!(next.status.success() && took < SOON, "{took:?}: {next:?}");
}

#[test]
fn wrong_times_on_redis_come_down() {
    let redis = Redis::builder().persistent(AppendOnly::Always).start().unwrap();
    comes_down(&redis.url());
}

#[test]
fn wrong_times_on_zookeeper_come_down() {
    comes_down(&ZooKeeper::start().unwrap().url());
}

#[test]
fn a_namespace_that_is_not_there_has_no_wrong_times() {
    Shell::new().fails(&["store", "repair", "--wrong-times"], 1, &["no namespace"]);
}
