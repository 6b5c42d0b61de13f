//! The examples, with the parts of them that do something run on a store in memory.
#![allow(dead_code, reason = "each example has a main of its own")]

#[path = "../../examples/cache_warmer.rs"]
mod cache_warmer;
#[path = "../../examples/cleanup.rs"]
mod cleanup;
#[path = "../../examples/health.rs"]
mod health;
#[path = "../../examples/metrics_aggregation.rs"]
mod metrics_aggregation;
#[path = "../../examples/migrations.rs"]
mod migrations;
#[path = "../../examples/scheduler.rs"]
mod scheduler;

use std::sync::Arc;
use std::time::Duration;

use frazil_coord::MemoryStore;
use frazil_election::{Callbacks, Candidate, Elections, Elector, Settings, run_until};
use tokio::sync::watch;

/// Longer than anything here takes.
const LIMIT: Duration = Duration::from_secs(30);
const BRIEF: Duration = Duration::from_millis(1);

async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(LIMIT, what).await.expect("it takes too long")
}

/// Two candidates of one election.
fn candidates() -> [Candidate; 2] {
    let elections = Elections::new(Arc::new(MemoryStore::new()));
    let named = |name: &str| Settings::default().with_instance(name);
    ["a", "b"].map(|name| elections.candidate("job", named(name)).unwrap())
}

/// Waits until it knows whether it leads and who does.
async fn leads(elector: &Elector) {
    soon(elector.leader().wait_for(Option::is_some)).await.unwrap();
    soon(async {
        while !elector.is_leader() {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test]
async fn the_scheduler_runs_its_jobs_until_it_is_stopped() {
    let [candidate, other] = candidates();
    let (count, counted) = watch::channel(0);
    let mut seen = counted.clone();
    let enough = async { drop(seen.wait_for(|count| *count >= 3).await.unwrap()) };
    let job = |_| count.send_modify(|count| *count += 1);
    let work = |proof| scheduler::schedule(proof, BRIEF, job);
    assert_eq!(soon(run_until(&candidate, enough, work)).await.unwrap(), Some(()));
    assert!(soon(other.campaign()).await.unwrap().is_leader());
}

#[tokio::test]
async fn one_process_migrates_and_the_others_find_it_done() {
    let directory = tempfile::tempdir().unwrap();
    let schema = directory.path().join("schema");
    let [a, b] = candidates();
    let both = async {
        tokio::join!(migrations::migrated(&a, &schema), migrations::migrated(&b, &schema))
    };
    let (first, second) = soon(both).await;
    let mut steps = [first.unwrap(), second.unwrap()];
    steps.sort_unstable();
    assert_eq!(steps, [0, 3]);
    assert_eq!(std::fs::read_to_string(&schema).unwrap(), "3");
}

#[tokio::test]
async fn the_leader_warms_the_cache() {
    let [candidate, _] = candidates();
    let cache = cache_warmer::Cache::default();
    let elector = cache_warmer::warmer(candidate, cache.clone());
    soon(async {
        while cache.lock().unwrap().len() < 1000 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    soon(elector.stop()).await.unwrap();
}

#[tokio::test]
async fn metrics_are_aggregated_by_the_leader_and_by_nobody_after_its_stop() {
    let [candidate, other] = candidates();
    let (count, mut counted) = watch::channel(0);
    let count = Arc::new(count);
    let aggregate = move || count.send_modify(|count| *count += 1);
    let elector = metrics_aggregation::aggregator(candidate, BRIEF, aggregate);
    drop(soon(counted.wait_for(|count| *count >= 3)).await.unwrap());
    soon(elector.stop()).await.unwrap();
    counted.mark_unchanged();
    assert!(soon(other.campaign()).await.unwrap().is_leader());
    assert!(!counted.has_changed().unwrap_or(false), "it goes on beside the next leader");
}

#[tokio::test]
async fn only_the_leader_cleans_up() {
    let [a, b] = candidates();
    let leader = Elector::start(a, Callbacks::new());
    leads(&leader).await;
    let follower = Elector::start(b, Callbacks::new());
    assert_eq!(cleanup::clean_up(&leader), leader.proof().map(|proof| proof.token()));
    assert!(cleanup::clean_up(&leader).is_some());
    assert_eq!(cleanup::clean_up(&follower), None);
    soon(leader.stop()).await.unwrap();
    soon(follower.stop()).await.unwrap();
}

#[tokio::test]
async fn health_says_who_leads_and_since_when() {
    let [candidate, _] = candidates();
    let elector = Elector::start(candidate, Callbacks::new());
    leads(&elector).await;
    let told: serde_json::Value = serde_json::from_str(&health::health(&elector).unwrap()).unwrap();
    assert_eq!((&told["is_leader"], &told["instance_id"]), (&true.into(), &"a".into()));
    assert_eq!(told["leader_info"]["instance"], "a");
    assert!(
        told["leader_info"]["renewed_ms"].as_u64() >= told["leader_info"]["elected_ms"].as_u64()
    );
    soon(elector.stop()).await.unwrap();
    let told: serde_json::Value = serde_json::from_str(&health::health(&elector).unwrap()).unwrap();
    assert_eq!(told["is_leader"], false);
}
