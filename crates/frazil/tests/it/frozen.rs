//! A process that is frozen while another takes its worker issues nothing that collides when it
//! wakes up. And the same with the horizon check removed, which must collide.
#![expect(clippy::print_stdout, reason = "the frozen process speaks to the test by its output")]

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use frazil::coord::Copied;
use frazil::coord::internal::keeper::{Keeper, Lane, Setup};
use frazil::coord::internal::time::{boot_time, unix_ms};
use frazil::coord::{FirstUse, Grant, LeaseState};
use frazil::coord::{Namespace, StoreUrl, Timing};
use frazil::id::{Generator, Options, SystemClock};
use frazil::{Layout, Node, StartError, layout_mark};
use frazil_rig::{Etcd, Redis, ZooKeeper, wait_until};

const WORKER: u32 = 7;
/// Short, so that the test is; etcd knows no shorter lease than a second or two.
const TIMING: Timing = Timing::DEFAULT
    .with_ttl(Duration::from_secs(2))
    .with_heartbeat(Duration::from_millis(500))
    .with_outage_budget(Duration::from_secs(6));
/// Longer than anything here takes.
const LIMIT: Duration = Duration::from_secs(60);
const URL: &str = "FRAZIL_TEST_FROZEN_URL";
const BROKEN: &str = "FRAZIL_TEST_FROZEN_BROKEN";

#[test]
fn a_frozen_redis_holder_wakes_up_harmless() {
    let redis = Redis::start().unwrap();
    assert_eq!(collisions(&redis.url(), Holder::Sound), 0);
}

#[test]
fn a_frozen_etcd_holder_wakes_up_harmless() {
    let etcd = Etcd::start().unwrap();
    assert_eq!(collisions(&etcd.url(), Holder::Sound), 0);
}

#[test]
fn a_frozen_zookeeper_holder_wakes_up_harmless() {
    let zookeeper = ZooKeeper::start().unwrap();
    assert_eq!(collisions(&format!("{}?session=2s", zookeeper.url()), Holder::Sound), 0);
}

#[test]
fn without_the_horizon_check_a_frozen_holder_collides() {
    let redis = Redis::start().unwrap();
    assert!(collisions(&redis.url(), Holder::WithoutHorizon) > 0, "the test would catch nothing");
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Holder {
    Sound,
    /// Stamps whatever tick it is.
    WithoutHorizon,
}

/// Freezes a holder, takes its worker, wakes it up, and counts the IDs that both issued.
fn collisions(url: &str, holder: Holder) -> usize {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let (child, lines) = start_holder(url, holder);
    let mut theirs = BTreeSet::new();
    collect_until(&lines, &mut theirs, |ids| ids.len() > 100);
    child.signal("-STOP");
    let node = runtime.block_on(take_over(url));
    assert_eq!(node.info().lanes[0].status.grant.unwrap().worker, WORKER);
    let ours = Arc::new(Mutex::new(BTreeSet::new()));
    let issuing = runtime.spawn({
        let (node, ours) = (node.clone(), ours.clone());
        async move {
            while let Ok(id) = node.next().await {
                ours.lock().unwrap().insert(id.to_u64());
                tokio::task::yield_now().await;
            }
        }
    });
    // The frozen holder's own horizon is past, and its successor is at work.
    let floor = node.info().lanes[0].status.grant.unwrap().floor;
    wait_until("the successor to issue past the old horizon", LIMIT, || {
        unix_ms() > floor + 50 && ours.lock().unwrap().len() > 1000
    })
    .unwrap();
    child.signal("-CONT");
    // It says that it lost its worker, or goes on without.
    let lost = collect_until(&lines, &mut theirs, |_| false);
    assert!(lost, "the frozen holder never noticed");
    drop(child);
    runtime.block_on(node.shutdown());
    runtime.block_on(issuing).unwrap();
    let ours = ours.lock().unwrap();
    assert!(ours.len() > 100, "the successor issued {} IDs", ours.len());
    ours.intersection(&theirs).count()
}

fn builder(url: &str) -> frazil::Builder {
    let builder = Node::builder().store(url).workers(WORKER..=WORKER);
    builder.timing(TIMING).first_use(FirstUse::AtOnce)
}

/// Starts a node as soon as the frozen holder's worker can be taken.
async fn take_over(url: &str) -> Node {
    let give_up = boot_time() + LIMIT;
    loop {
        match builder(url).patience(LIMIT).start().await {
            Ok(node) => return node,
            Err(StartError::NoWorker(_)) if boot_time() < give_up => {}
            Err(error) => panic!("{error}"),
        }
    }
}

/// A process that ends with the test, frozen or not.
struct Process(Child);

impl Process {
    fn signal(&self, signal: &str) {
        let status = Command::new("kill").args([signal, &self.0.id().to_string()]).status();
        assert!(status.unwrap().success());
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start_holder(url: &str, holder: Holder) -> (Process, Receiver<String>) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "frozen::holder_process", "--ignored", "--nocapture"]).env(URL, url);
    if holder == Holder::WithoutHorizon {
        command.env(BROKEN, "1");
    }
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    let (send, lines) = mpsc::channel();
    std::thread::spawn(move || {
        output.lines().map_while(Result::ok).try_for_each(|line| send.send(line))
    });
    (Process(child), lines)
}

/// Collects IDs until there are enough (`false`) or the holder says that it lost its worker.
fn collect_until(
    lines: &Receiver<String>,
    ids: &mut BTreeSet<u64>,
    enough: impl Fn(&BTreeSet<u64>) -> bool,
) -> bool {
    loop {
        let line = lines.recv_timeout(LIMIT).expect("the holder says something in time");
        if line == "lost" {
            return true;
        }
        if let Ok(id) = line.parse() {
            assert!(ids.insert(id), "the holder repeats itself");
        }
        if enough(ids) {
            return false;
        }
    }
}

/// The holder, in a process of its own: prints its IDs, and "lost" when it lost its worker.
#[test]
#[ignore = "started by the tests above"]
fn holder_process() {
    let url = std::env::var(URL).expect("started by a test");
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    match std::env::var(BROKEN) {
        Err(_) => runtime.block_on(sound_holder(&url)),
        Ok(_) => runtime.block_on(holder_without_horizon(&url)),
    }
}

/// Whether a holder that lost its worker has gone on for a while since it noticed: long enough to
/// meet its successor, if anything lets it.
fn has_gone_on(is_lost: bool, noticed: &mut Option<Duration>) -> bool {
    is_lost && boot_time() > *noticed.get_or_insert_with(boot_time) + Duration::from_millis(300)
}

async fn sound_holder(url: &str) {
    let node = builder(url).start().await.unwrap();
    let mut told = false;
    let mut noticed = None;
    loop {
        if let Ok(id) = node.next().await {
            println!("{id}");
        }
        let state = node.info().lanes[0].status.state.clone();
        let is_lost = !matches!(state, LeaseState::Held | LeaseState::Unrenewed);
        if !told && has_gone_on(is_lost, &mut noticed) {
            println!("lost");
            told = true;
        }
        tokio::task::yield_now().await;
    }
}

/// A lane that takes floors seriously, but not horizons.
struct Careless {
    generator: Mutex<Option<Generator<SystemClock>>>,
}

impl Lane for Careless {
    fn now(&self) -> u64 {
        unix_ms()
    }

    fn open(&self, grant: Grant) {
        let floor = grant.floor.saturating_sub(Layout::FRAZIL.epoch_ms());
        let options = Options::default().with_floor(floor);
        let clock = SystemClock::new(&Layout::FRAZIL);
        let made = Generator::new(&Layout::FRAZIL, grant.worker.into(), clock, options);
        *self.generator.lock().unwrap() = Some(made.unwrap());
    }

    fn raise(&self, _: u64) {}

    fn last(&self) -> u64 {
        0
    }

    fn close(&self) -> u64 {
        0
    }
}

async fn holder_without_horizon(url: &str) {
    let url: StoreUrl = url.parse().unwrap();
    let store = frazil::coord::open(&url, &Namespace::default(), Copied::Refuse).await.unwrap();
    let lane = Arc::new(Careless { generator: Mutex::new(None) });
    let setup = Setup {
        timing: TIMING,
        layout: layout_mark(&Layout::FRAZIL),
        workers: Some((WORKER, WORKER)),
        last_worker: 1023,
        first_use: FirstUse::AtOnce,
        holder: "careless".into(),
        info: BTreeMap::new(),
        favourite: None,
    };
    let keeper = Keeper::start(store, lane.clone(), setup).unwrap();
    let status = keeper.status();
    let mut noticed = None;
    loop {
        if let Some(generator) = &*lane.generator.lock().unwrap() {
            // As the loop of the sound holder, but nothing stops it.
            if let Ok(id) = generator.try_next() {
                println!("{id}");
            }
        }
        let is_lost = matches!(status.borrow().state, LeaseState::Replacing(..));
        if has_gone_on(is_lost, &mut noticed) {
            break;
        }
        tokio::task::yield_now().await;
    }
    println!("lost");
    std::future::pending::<()>().await;
}
