//! Strict scopes over real processes: IDs that increase across nodes, whoever is killed.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::serving::Served;
use frazil_coord::internal::time::boot_time;
use frazil_rig::{Etcd, FalseClock, Redis, ZooKeeper, wait_until};
use serde_json::Value;

/// IDs of one request.
const BATCH: u64 = 20;
/// Longer than anything here takes.
const LIMIT: Duration = Duration::from_secs(60);

/// One answer: when it was asked for and when it was there, and its IDs.
#[derive(Clone, Copy, Debug)]
struct Answer {
    asked: Duration,
    answered: Duration,
    first: u64,
    last: u64,
    /// Whether another node issued them than was asked.
    was_forwarded: bool,
}

/// Two that are in the wrong order: what was answered before the other was asked for is larger.
fn out_of_order(answers: &[Answer]) -> Option<(Answer, Answer)> {
    let mut by_asked = answers.to_vec();
    by_asked.sort_by_key(|answer| answer.asked);
    let mut by_answered = answers.to_vec();
    by_answered.sort_by_key(|answer| answer.answered);
    let (mut before, mut largest) = (by_answered.into_iter().peekable(), None::<Answer>);
    for later in by_asked {
        while let Some(earlier) = before.next_if(|earlier| earlier.answered < later.asked) {
            if largest.is_none_or(|largest| earlier.last > largest.last) {
                largest = Some(earlier);
            }
        }
        if let Some(largest) = largest.filter(|largest| largest.last >= later.first) {
            return Some((largest, later));
        }
    }
    None
}

/// What happens to a leader.
#[derive(Clone, Copy, Debug)]
enum Fault {
    Kill,
    Freeze,
}

/// Two nodes of a namespace.
struct Pair {
    store: String,
    scope: String,
    /// That of the second node, if it is not right.
    clock: Option<FalseClock>,
    nodes: [Mutex<Served>; 2],
    addresses: [Mutex<String>; 2],
}

const NAMES: [&str; 2] = ["one", "two"];

impl Pair {
    fn start(store: &str, scope: &str, clock: Option<FalseClock>) -> Self {
        let created = Command::new(env!("CARGO_BIN_EXE_frazil"))
            .args(["store", "init", "--store", store])
            .output()
            .unwrap();
        assert!(created.status.success(), "{created:?}");
        let nodes = [0, 1].map(|place| serve(store, scope, clock.as_ref(), place));
        let addresses = [0, 1].map(|place| Mutex::new(nodes[place].http.clone()));
        let (store, scope, nodes) = (store.into(), scope.into(), nodes.map(Mutex::new));
        Self { store, scope, clock, nodes, addresses }
    }

    /// What a node says of the scope's leader.
    fn leader(&self, place: usize) -> Option<(String, u64)> {
        let address = self.addresses[place].lock().unwrap().clone();
        let (200, info) = ask(&address, "GET", "/v1/info")? else { return None };
        let leader = &info["scopes"][0]["leader"];
        let token = leader["token"].as_str()?.parse().ok()?;
        Some((leader["node"].as_str()?.to_owned(), token))
    }

    /// Waits until somebody leads with a token that is larger than one, as these nodes see it.
    fn wait_for_leader(&self, asked: &[usize], after: u64) -> (usize, u64) {
        let mut found = None;
        wait_until("a new leader", LIMIT, || {
            let seen = asked.iter().filter_map(|place| self.leader(*place));
            found = seen.max_by_key(|(_, token)| *token).filter(|(_, token)| *token > after);
            found.is_some()
        })
        .unwrap();
        let (name, token) = found.unwrap();
        (NAMES.iter().position(|known| *known == name).unwrap(), token)
    }

    /// Does something to the node that leads; gives the next leader.
    fn strike(&self, fault: Fault, leader: usize, token: u64) -> (usize, u64) {
        match fault {
            Fault::Kill => {
                let mut node = self.nodes[leader].lock().unwrap();
                node.signal("-KILL");
                node.wait();
                // The other one leads before it is back: leadership moves each time.
                let next = self.wait_for_leader(&[1 - leader], token);
                *node = serve(&self.store, &self.scope, self.clock.as_ref(), leader);
                *self.addresses[leader].lock().unwrap() = node.http.clone();
                next
            }
            Fault::Freeze => {
                self.nodes[leader].lock().unwrap().signal("-STOP");
                let next = self.wait_for_leader(&[1 - leader], token);
                // It wakes up with requests that came while it slept, and another leader.
                self.nodes[leader].lock().unwrap().signal("-CONT");
                next
            }
        }
    }

    /// Asks the nodes in turn until it is told to stop; notes every answer.
    fn ask_in_turn(&self, first: usize, is_over: &AtomicBool, count: &AtomicU64) -> Vec<Answer> {
        let mut answers = Vec::new();
        for turn in first.. {
            if is_over.load(Ordering::Relaxed) {
                break;
            }
            let place = turn % 2;
            let address = self.addresses[place].lock().unwrap().clone();
            let name = self.scope.split('=').next().unwrap();
            let asked = boot_time();
            let path = format!("/v1/ids?count={BATCH}&scope={name}");
            let Some((200, reply)) = ask(&address, "POST", &path) else { continue };
            let answered = boot_time();
            let ids: Vec<u64> = reply["ids"].as_array().unwrap().iter().map(number).collect();
            assert_eq!(ids.len() as u64, BATCH);
            assert!(ids.is_sorted_by(|one, other| one < other), "{ids:?}");
            answers.push(Answer {
                asked,
                answered,
                first: ids[0],
                last: ids[ids.len() - 1],
                was_forwarded: reply["metadata"]["node"] != NAMES[place],
            });
            count.fetch_add(BATCH, Ordering::Relaxed);
        }
        answers
    }
}

fn number(id: &Value) -> u64 {
    id.as_str().unwrap().parse().unwrap()
}

fn serve(store: &str, scope: &str, clock: Option<&FalseClock>, place: usize) -> Served {
    let name = NAMES[place];
    let args = ["--store", store, "--scope", scope, "--node", name, "--election-ttl", "2s"];
    let mut served = match clock.filter(|_| place == 1) {
        Some(clock) => Served::start_by(clock, &args),
        None => Served::start(&args),
    };
    served.wait_until_ready();
    served
}

/// The answer of a node, if it gives one.
fn ask(address: &str, method: &str, path: &str) -> Option<(u16, Value)> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(10))).ok()?;
    write!(stream, "{method} {path} HTTP/1.1\r\nhost: test\r\nconnection: close\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    Some((status, serde_json::from_str(body).ok()?))
}

/// Asks for IDs by two clients, each of which asks the nodes in turn, while something is done to
/// the leader so often, and until there are so many IDs.
fn storm(store: &str, scope: &str, fault: Fault, times: u32, ids: u64) -> Vec<Answer> {
    storm_over(Pair::start(store, scope, None), fault, times, ids)
}

fn storm_over(pair: Pair, fault: Fault, times: u32, ids: u64) -> Vec<Answer> {
    let pair = Arc::new(pair);
    let (is_over, count) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let mut token = 0;
    let mut leader = 0;
    if times > 0 {
        (leader, token) = pair.wait_for_leader(&[0, 1], 0);
    }
    let clients: Vec<_> = [0, 1]
        .into_iter()
        .map(|first| {
            let (pair, is_over, count) = (pair.clone(), is_over.clone(), count.clone());
            std::thread::spawn(move || pair.ask_in_turn(first, &is_over, &count))
        })
        .collect();
    for time in 0..times {
        let enough = ids * u64::from(time + 1) / u64::from(times + 1);
        let before = count.load(Ordering::Relaxed);
        wait_until("IDs in between", LIMIT, || {
            let now = count.load(Ordering::Relaxed);
            now >= enough && now > before
        })
        .unwrap();
        (leader, token) = pair.strike(fault, leader, token);
    }
    wait_until("the last IDs", LIMIT, || count.load(Ordering::Relaxed) >= ids).unwrap();
    is_over.store(true, Ordering::Relaxed);
    clients.into_iter().flat_map(|client| client.join().unwrap()).collect()
}

/// A hundred thousand IDs, and ten leaders that are killed.
fn ids_increase_over(store: &str) {
    ids_increase(storm(store, "orders=strict", Fault::Kill, 10, 100_000));
}

fn ids_increase(answers: Vec<Answer>) {
    let forwarded = answers.iter().filter(|answer| answer.was_forwarded).count();
    assert!(forwarded * 10 > answers.len(), "{forwarded} of {} were forwarded", answers.len());
    if let Some((earlier, later)) = out_of_order(&answers) {
        panic!("{later:?} is not above {earlier:?}");
    }
    // The same answers in another order are caught.
    let mut swapped = answers;
    let (one, two) = (swapped.len() / 3, swapped.len() / 3 * 2);
    let (first, second) = (swapped[one], swapped[two]);
    (swapped[one].first, swapped[one].last) = (second.first, second.last);
    (swapped[two].first, swapped[two].last) = (first.first, first.last);
    assert!(out_of_order(&swapped).is_some());
}

#[test]
fn ids_of_a_strict_scope_increase_while_its_leader_is_killed_over_redis() {
    let redis = Redis::start().unwrap();
    ids_increase_over(&redis.url());
}

#[test]
fn ids_of_a_strict_scope_increase_while_its_leader_is_killed_over_files() {
    let directory = tempfile::tempdir().unwrap();
    ids_increase_over(&format!("file:{}", directory.path().display()));
}

#[test]
fn ids_of_a_strict_scope_increase_while_its_leader_is_killed_over_etcd() {
    let etcd = Etcd::start().unwrap();
    ids_increase_over(&etcd.url());
}

/// Here a leader is present for as long as its session, which is longer than the TTL.
#[test]
fn ids_of_a_strict_scope_increase_while_its_leader_is_killed_over_zookeeper() {
    let zookeeper = ZooKeeper::start().unwrap();
    ids_increase(storm(&zookeeper.url(), "orders=strict", Fault::Kill, 3, 30_000));
}

#[test]
fn ids_of_a_strict_scope_increase_while_its_leader_is_frozen_over_redis() {
    let redis = Redis::start().unwrap();
    ids_increase(storm(&redis.url(), "orders=strict", Fault::Freeze, 5, 50_000));
}

/// What the leader before has issued is ahead of the next clock: a leader without its floor fails here.
#[test]
fn ids_of_a_strict_scope_increase_although_one_clock_is_a_second_behind() {
    let (directory, clock) = (tempfile::tempdir().unwrap(), FalseClock::new().unwrap());
    clock.set_back(Duration::from_secs(1)).unwrap();
    let store = format!("file:{}", directory.path().display());
    let pair = Pair::start(&store, "orders=strict", Some(clock));
    ids_increase(storm_over(pair, Fault::Kill, 6, 30_000));
}

/// The control: nodes that issue by themselves are caught.
#[test]
fn ids_of_a_plain_scope_do_not_increase_across_nodes() {
    let directory = tempfile::tempdir().unwrap();
    let store = format!("file:{}", directory.path().display());
    let answers = storm(&store, "orders", Fault::Kill, 0, 20_000);
    assert!(answers.iter().all(|answer| !answer.was_forwarded));
    assert!(out_of_order(&answers).is_some());
}
