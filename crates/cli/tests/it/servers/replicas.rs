//! A Redis replica that is lost, and the command that gives it up.

use std::time::Duration;

use frazil_rig::{AppendOnly, Redis, Sentinels, wait_until};

use crate::serving::Served;
use crate::shell::Shell;

const LIMIT: Duration = Duration::from_secs(30);

#[test]
fn a_lost_replica_is_named_by_the_doctor_and_given_up_by_its_address() {
    let builder = || Redis::builder().persistent(AppendOnly::Always);
    let master = builder().start().unwrap();
    let replica = builder().replica_of(&master).start().unwrap();
    let sentinels = Sentinels::start(&master).unwrap();
    let (shell, url, lost) = (Shell::new(), sentinels.url(), replica.address());
    let quarantine = ["store", "quarantine", "--for", "1s", "--store", &url];
    let forget = ["store", "forget-replica", &lost, "--store", &url, "--json"];
    shell.fails(&forget, 1, &["no namespace", "store init"]);
    let init = shell.output(&["store", "init", "--store", &url]);
    assert!(init.status.success(), "{init:?}");
    shell.fails(&forget, 1, &[&lost, "is connected"]);
    shell.fails(
        &["store", "forget-replica", "10.0.0.9:1", "--store", &url],
        1,
        &["no replica 10.0.0.9:1", &lost],
    );

    let mut served = Served::start(&["--store", &url]);
    served.wait_until_ready();
    replica.kill();
    let is_missed = || master.info("connected_slaves").is_ok_and(|count| count == "0");
    wait_until("the master to miss it", LIMIT, is_missed).unwrap();
    // What an operator writes waits for it too, and says what to do.
    let command = format!("frazil store forget-replica {lost} --store '{url}' --namespace default");
    shell.fails(&quarantine, 3, &[&command]);
    let examined = shell.output(&["doctor", "--store", &url]);
    let said = String::from_utf8_lossy(&examined.stdout);
    assert!(said.contains(&command), "{said}");
    // A node that holds its worker names it, and is ready.
    let metric = format!("frazil_store_replicas_missing{{replica=\"{lost}\"}} 1");
    let page = |path: &str| served.request("GET", path);
    wait_until("the node to name it", LIMIT, || page("/metrics").1.contains(&metric)).unwrap();
    let (status, ready) = page("/readyz?verbose");
    assert!(status == 200 && ready.contains(&format!("[-] replica {lost}")), "{status} {ready}");
    assert!(page("/v1/info").1.contains(&command), "{}", page("/v1/info").1);

    let forgotten = shell.json_lines(&forget);
    assert_eq!(forgotten[0]["forgotten"][0], lost.as_str(), "{forgotten:?}");
    assert_eq!(forgotten[0]["missing"].as_array().map(Vec::len), Some(0), "{forgotten:?}");
    wait_until("the node to see that", LIMIT, || !page("/metrics").1.contains(&lost)).unwrap();
    assert!(!page("/readyz?verbose").1.contains(&lost));
    let quarantined = shell.output(&quarantine);
    assert!(quarantined.status.success(), "{quarantined:?}");
}

#[test]
fn a_store_without_replicas_that_count_says_so() {
    let shell = Shell::new();
    let redis = Redis::start().unwrap();
    let url = redis.url();
    assert!(shell.output(&["store", "init", "--store", &url]).status.success());
    let forget = ["store", "forget-replica", "127.0.0.1:1", "--store", &url, "--accept-loss"];
    shell.fails(&forget, 2, &["waits for no replicas", "redis+sentinel:"]);
    shell.fails(&["store", "forget-replica", "--store", &url], 2, &["HOST:PORT"]);
}
