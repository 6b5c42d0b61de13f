//! Where jobs go: at the start, when nodes come and go, and in a rolling restart.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use frazil_coord::MemoryStore;
use frazil_election::Elections;
use frazil_election::processor::{Running, Step, StopReason};

use crate::processor::crew::{leads, names, node, quick_balance, until, with_jobs, within};
use crate::processor::journal::{Journal, longest_gap};
use crate::stage::{PATIENCE, Stage, on_every_store, settings};

on_every_store! {
    a_rolling_restart_leaves_no_job_alone_and_ends_even,
}

const NODES: [&str; 3] = ["a", "b", "c"];

fn spread(journal: &Journal, nodes: &[&str]) -> usize {
    let loads = journal.loads(nodes);
    loads.iter().max().unwrap() - loads.iter().min().unwrap()
}

async fn start(stage: &Stage, journal: &Journal, name: &str, jobs: &[String]) -> Running {
    let processor = node(stage.elections().await, name).balance(quick_balance());
    with_jobs(processor, journal, name, jobs).start().unwrap()
}

async fn a_rolling_restart_leaves_no_job_alone_and_ends_even(stage: Stage) {
    let (journal, jobs) = (Journal::default(), names(29));
    let mut nodes = BTreeMap::new();
    for name in NODES {
        nodes.insert(name, start(&stage, &journal, name, &jobs).await);
    }
    let is_even = || journal.running().len() == 29 && spread(&journal, &NODES) <= 1;
    until("an even start", is_even).await;
    for name in NODES {
        let report = nodes.remove(name).unwrap().stop().await;
        assert!(report.unfinished.is_empty(), "{report:?}");
        until("all to run elsewhere", || journal.running().len() == 29).await;
        assert_eq!(journal.loads(&[name]), [0]);
        let again = start(&stage, &journal, name, &jobs).await;
        let mut status = again.status();
        let joined = status.wait_for(|status| status.member.is_some());
        tokio::time::timeout(PATIENCE, joined).await.unwrap().unwrap();
        nodes.insert(name, again);
    }
    assert!(within(Duration::from_secs(30), is_even).await, "{:?}", journal.loads(&NODES));
    let (gap, job) = longest_gap(&journal.spans());
    assert!(gap < settings("").ttl, "{job} did not run for {gap:?}");
    // Even loads are left alone, once the moves that were under way have ended.
    let mut is_calm = false;
    for _ in 0..5 {
        let runs = journal.spans().len();
        is_calm = !within(Duration::from_secs(2), || journal.spans().len() > runs).await;
        if is_calm {
            break;
        }
    }
    assert!(is_calm && is_even(), "jobs move without end: {:?}", journal.loads(&NODES));
    for node in nodes.into_values() {
        node.stop().await;
    }
    journal.check();
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_that_start_together_share_evenly_and_nothing_moves() {
    let (journal, jobs, store) = (Journal::default(), names(29), Arc::new(MemoryStore::new()));
    let start = |name: &'static str| {
        let processor = node(Elections::new(store.clone()), name).balance(quick_balance());
        // Long enough for a busy machine.
        let processor = processor.settle(Duration::from_secs(1)).rank_step(Duration::from_secs(1));
        with_jobs(processor, &journal, name, &jobs).start().unwrap()
    };
    let nodes = NODES.map(start);
    until("all to run", || journal.running().len() == 29).await;
    assert!(!within(Duration::from_secs(2), || journal.spans().len() > 29).await);
    assert!(spread(&journal, &NODES) <= 1, "{:?}", journal.loads(&NODES));
    for node in nodes {
        node.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_joins_gets_its_share_one_job_at_a_time() {
    let (journal, jobs, store) = (Journal::default(), names(10), Arc::new(MemoryStore::new()));
    let start = |name: &'static str| {
        let processor = node(Elections::new(store.clone()), name).balance(quick_balance());
        with_jobs(processor, &journal, name, &jobs).start().unwrap()
    };
    let first = start("a");
    leads(&first, 10).await;
    let mut events = first.events();
    let second = start("b");
    until("an even load", || journal.loads(&["a", "b"]) == [5, 5]).await;
    first.stop().await;
    let mut moves = Vec::new();
    while let Ok(event) = events.try_recv() {
        if event.step == Step::Cancelled(StopReason::Balance) {
            moves.push((event.at, event.job));
        }
    }
    assert_eq!(moves.len(), 5, "no more than needed");
    let spans = journal.spans();
    for pair in moves.windows(2) {
        let (at, job) = &pair[0];
        let arrival = spans.iter().find(|s| s.job == *job && s.node == "b" && s.begin > *at);
        assert!(arrival.expect("it arrived").begin < pair[1].0, "two on their way at a time");
    }
    second.stop().await;
    journal.check();
}

#[tokio::test(flavor = "multi_thread")]
async fn two_processes_of_one_name_are_two_nodes() {
    let (journal, jobs, store) = (Journal::default(), names(8), Arc::new(MemoryStore::new()));
    let start = |mark: &'static str| {
        let processor = node(Elections::new(store.clone()), "same").balance(quick_balance());
        let processor = processor.settle(Duration::from_millis(500));
        with_jobs(processor, &journal, mark, &jobs).start().unwrap()
    };
    let nodes = ["one", "two"].map(start);
    until("an even load", || journal.loads(&["one", "two"]) == [4, 4]).await;
    let numbers = nodes.each_ref().map(|node| node.status().borrow().member);
    assert_ne!(numbers[0], numbers[1]);
    for node in nodes {
        node.stop().await;
    }
    journal.check();
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_given_to_a_node_that_runs_other_jobs() {
    let (journal, store) = (Journal::default(), Arc::new(MemoryStore::new()));
    let start = |name: &'static str, jobs: &[String]| {
        let processor = node(Elections::new(store.clone()), name).balance(quick_balance());
        with_jobs(processor, &journal, name, jobs).start().unwrap()
    };
    let first = start("a", &names(6));
    leads(&first, 6).await;
    let second = start("b", &["another".into()]);
    leads(&second, 1).await;
    assert!(!within(Duration::from_secs(2), || journal.spans().len() > 7).await, "in vain");
    first.stop().await;
    second.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_balancing_a_node_that_joins_stays_idle() {
    let (journal, jobs, store) = (Journal::default(), names(6), Arc::new(MemoryStore::new()));
    let start = |name: &'static str| {
        let processor = node(Elections::new(store.clone()), name).balance(None);
        with_jobs(processor, &journal, name, &jobs).start().unwrap()
    };
    let first = start("a");
    leads(&first, 6).await;
    let second = start("b");
    assert!(!within(Duration::from_secs(2), || journal.loads(&["b"]) != [0]).await);
    first.stop().await;
    leads(&second, 6).await;
    second.stop().await;
}
