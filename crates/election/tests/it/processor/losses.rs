//! Leaderships that are lost, and stores that go away.

use std::sync::Arc;
use std::time::Duration;

use frazil_coord::Copied;
use frazil_coord::MemoryStore;
use frazil_coord::internal::time::boot_time;
use frazil_coord::{Group, Presence, Store, open};
use frazil_election::processor::{Processor, Run, Step, StopReason};
use frazil_election::{Elections, store_url};
use frazil_rig::Proxy;

use crate::processor::crew::{
    event, leads, names, node, slot, take_over, until, with_jobs, within,
};
use crate::processor::gate::Gate;
use crate::processor::journal::{Journal, in_order};
use crate::stage::{Kind, PATIENCE, Stage, on_every_store, settings};

on_every_store! {
    a_store_that_is_gone_for_less_than_the_ttl_stops_nothing,
    jobs_stop_before_another_node_has_them_when_the_store_is_gone_for_longer,
}

/// A node's way to the store, which can be cut.
struct Line {
    elections: Elections,
    gate: Arc<Gate>,
    proxy: Option<Proxy>,
}

impl Line {
    /// One for leaderships with this time to live.
    async fn new(stage: &Stage, ttl: Duration) -> Self {
        let (store, proxy) = match stage.url() {
            None => (stage.store().await, None),
            Some(url) => {
                let (url, proxy) = match url.split_once("://") {
                    Some((scheme, address)) => {
                        let proxy = Proxy::start(address).unwrap();
                        (format!("{scheme}://{}", proxy.address()), Some(proxy))
                    }
                    None => (url, None),
                };
                let url = store_url(&url.parse().unwrap(), ttl);
                let namespace = stage.namespace().parse().unwrap();
                (open(&url, &namespace, Copied::Refuse).await.unwrap(), proxy)
            }
        };
        let gate = Gate::new(store);
        Self { elections: Elections::new(gate.clone()), gate, proxy }
    }

    /// Nothing passes any more, and nobody says so where there is a network.
    fn cut(&self) {
        match &self.proxy {
            Some(proxy) => proxy.black_hole(),
            None => self.gate.change(|rules| rules.fails = true),
        }
    }

    fn heal(&self) {
        match &self.proxy {
            Some(proxy) => proxy.heal(),
            None => self.gate.change(|rules| rules.fails = false),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_loss_is_noticed_although_the_release_of_another_job_hangs() {
    let (memory, journal) = (MemoryStore::new(), Journal::default());
    let gate = Gate::new(Arc::new(memory.clone()));
    let gives_up = |job: &str| Duration::from_secs(if job == "job-0" { 1 } else { 600 });
    let processor = node(Elections::new(gate.clone()), "a").voluntary_timeout(gives_up).strict();
    gate.change(|rules| rules.holds_releases = [slot("job-0").name().to_owned()].into());
    let running = with_jobs(processor, &journal, "a", &names(2)).start().unwrap();
    let mut events = running.events();
    event(&mut events, "job-0", |step| matches!(step, Step::Stopped { .. })).await;
    let thief = take_over(&memory, "job-1").await;
    event(&mut events, "job-1", |step| *step == Step::Cancelled(StopReason::Expiring)).await;
    event(&mut events, "job-1", |step| matches!(step, Step::Stopped { .. })).await;
    assert!(thief.is_leader());
    assert!(gate.rules().holds_releases.len() == 1, "the release hangs still");
    gate.change(|rules| rules.holds_releases.clear());
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_loss_is_told_as_a_loss_and_the_next_leader_is_left_alone() {
    let (memory, journal) = (MemoryStore::new(), Journal::default());
    let elections = Elections::new(Arc::new(memory.clone()));
    let running = with_jobs(node(elections, "a"), &journal, "a", &names(1)).start().unwrap();
    leads(&running, 1).await;
    let token = running.status().borrow().job("job-0").unwrap().token.unwrap();
    let mut events = running.events();
    let thief = take_over(&memory, "job-0").await;
    let ended = |step: &Step| matches!(step, Step::Lost | Step::Released);
    let lost = event(&mut events, "job-0", ended).await;
    assert_eq!((lost.step, lost.token), (Step::Lost, token));
    assert!(thief.is_leader() && thief.token() > token);
    let status = running.status().borrow().job("job-0").cloned().unwrap();
    assert_eq!((status.last_error, status.restarts), (None, 0), "it has not failed");
    // It campaigns again, and is elected with a new token.
    thief.resign().await.unwrap();
    let again = event(&mut events, "job-0", |step| *step == Step::Started).await;
    assert!(again.token > lost.token);
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_win_that_is_heard_of_too_late_is_not_taken() {
    let (memory, journal, jobs) = (MemoryStore::new(), Journal::default(), names(1));
    let gate = Gate::new(Arc::new(memory.clone()));
    let name = slot("job-0").name().to_owned();
    gate.change(|rules| rules.holds_wins = [name].into());
    let late = with_jobs(node(Elections::new(gate.clone()), "late"), &journal, "late", &jobs);
    let late = late.start().unwrap();
    until("it to win", || gate.rules().held_wins > 0).await;
    // It hears nothing, renews nothing, and its claim lapses.
    let other = with_jobs(
        node(Elections::new(Arc::new(memory.clone())), "other"),
        &journal,
        "other",
        &jobs,
    );
    let other = other.start().unwrap();
    until("the other to have it", || journal.runs_on("job-0", "other")).await;
    gate.change(|rules| rules.holds_wins.clear());
    until("it to hear of its win", || gate.rules().held_wins == 0).await;
    let anything_started = || journal.spans().len() > 1;
    assert!(!within(Duration::from_secs(2), anything_started).await, "an old win was taken");
    assert_eq!(late.status().borrow().led(), 0);
    assert!(journal.runs_on("job-0", "other"));
    let held = memory.list(Group::Elections).await.unwrap();
    let held = held.into_iter().find(|entry| entry.slot == slot("job-0")).unwrap();
    assert_ne!(held.presence, Presence::Free, "the other's leadership was not released");
    late.stop().await;
    other.stop().await;
    journal.check();
}

/// Much longer than the outage, and the longest that the ZooKeeper of these tests gives.
const LONG_TTL: Duration = Duration::from_secs(10);

fn patient(processor: Processor, name: &str) -> Processor {
    let heartbeat = Duration::from_secs(1);
    let mut settings = settings(name).with_heartbeat(heartbeat);
    settings.ttl = LONG_TTL;
    processor.settings(settings)
}

async fn a_store_that_is_gone_for_less_than_the_ttl_stops_nothing(stage: Stage) {
    let (journal, jobs) = (Journal::default(), names(5));
    let line = Line::new(&stage, LONG_TTL).await;
    let processor = patient(node(line.elections.clone(), "a"), "a");
    let running = with_jobs(processor, &journal, "a", &jobs).start().unwrap();
    leads(&running, 5).await;
    let cut = boot_time();
    line.cut();
    // Longer than a heartbeat: every renewal fails at least once.
    until("time to pass", || boot_time() > cut + Duration::from_millis(1500)).await;
    line.heal();
    let healed = boot_time();
    until("what could go wrong", || boot_time() > healed + Duration::from_secs(2)).await;
    assert_eq!(journal.running().len(), 5);
    assert_eq!(journal.spans().len(), 5, "nothing was started again");
    running.stop().await;
}

async fn jobs_stop_before_another_node_has_them_when_the_store_is_gone_for_longer(stage: Stage) {
    if stage.kind == Kind::File {
        // No time ends what the kernel holds, and files do not go away.
        return;
    }
    let (journal, jobs) = (Journal::default(), names(6));
    let line = Line::new(&stage, settings("").ttl).await;
    let cut_off = with_jobs(node(line.elections.clone(), "a"), &journal, "a", &jobs);
    let cut_off = cut_off.start().unwrap();
    leads(&cut_off, 6).await;
    let other = with_jobs(node(stage.elections().await, "b"), &journal, "b", &jobs);
    let other = other.start().unwrap();
    line.cut();
    until("the other to have them all", || journal.loads(&["a", "b"]) == [0, 6]).await;
    journal.check();
    line.heal();
    // It takes part again: it has the jobs when the other is gone.
    let mut status = cut_off.status();
    let is_back = status.wait_for(|status| status.member.is_some());
    tokio::time::timeout(PATIENCE, is_back).await.unwrap().unwrap();
    other.stop().await;
    until("it to have them again", || journal.loads(&["a", "b"]) == [6, 0]).await;
    cut_off.stop().await;
    journal.check();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_ran_on_after_its_leadership_would_be_caught() {
    let stage = Stage::new(Kind::Memory);
    let journal = Journal::default();
    let line = Line::new(&stage, settings("").ttl).await;
    // Its work goes on behind the processor's back.
    let written = journal.clone();
    let cut_off = node(line.elections.clone(), "a").job("job-0", move |run: Run| {
        let entry = written.begin(&run, "a");
        tokio::spawn(async move {
            std::future::pending::<()>().await;
            drop(entry);
        });
        async move {
            run.cancelled().await;
            Ok(())
        }
    });
    let cut_off = cut_off.start().unwrap();
    leads(&cut_off, 1).await;
    let other = with_jobs(node(stage.elections().await, "b"), &journal, "b", &names(1));
    let other = other.start().unwrap();
    line.cut();
    leads(&other, 1).await;
    until("it to run twice", || journal.spans().len() == 2).await;
    assert!(in_order(&journal.spans()).unwrap_err().contains("twice at a time"));
    other.stop().await;
}
