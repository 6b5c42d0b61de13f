//! No time is used by two tenures of a slot, whatever happens to requests and replies; and clients
//! and stores that break a rule are found out.

mod history;

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use frazil_conformance::{Chances, Faulty};
use frazil_coord::Copied;
use frazil_coord::MemoryStore;
use frazil_coord::internal::FORMAT;
use frazil_coord::internal::stores::file::FileStore;
use frazil_coord::{Meta, Namespace, Nonce, Put, Slot, Store, StoreUrl, Token, Version};

use self::history::{Habit, History, Overlap, SLOTS, Tally};
use crate::naive::defect::Defect;
use crate::naive::store::Naive;

/// More than a network does, so that a short history has all of them.
const CHANCES: Chances = Chances { request_lost: 80, reply_lost: 120, twice: 80, late: 250 };
const CLIENTS: u64 = 5;

async fn create_meta(store: &dyn Store) -> Version {
    let meta = Meta {
        format: FORMAT,
        incarnation: Nonce::from_bits(1),
        layout: "test".into(),
        first_worker: 0,
        last_worker: SLOTS - 1,
        window_ms: 600,
        quarantine: 0,
        token_floor: Token::default(),
        created: 1,
    };
    match store.put_meta(None, &meta).await.unwrap() {
        Put::Done(version) => version,
        Put::Conflict => panic!("meta exists"),
    }
}

fn faulty(stores: Vec<Arc<dyn Store>>, seed: u64) -> Vec<Faulty> {
    let seeds = (0..).map(|client: u64| seed.wrapping_mul(1000) + client);
    stores.into_iter().zip(seeds).map(|(store, seed)| Faulty::new(store, CHANCES, seed)).collect()
}

async fn in_memory(habit: Habit, seed: u64) -> Result<Tally, Overlap> {
    let memory = MemoryStore::new();
    let meta = create_meta(&memory).await;
    let stores = (0..CLIENTS).map(|_| Arc::new(memory.clone()) as Arc<dyn Store>).collect();
    let expire = Box::new(move |slot: &Slot| memory.expire(slot));
    History::new(faulty(stores, seed), habit, expire, meta, seed).run(400).await
}

async fn in_naive(defect: Option<Defect>, seed: u64) -> Result<Tally, Overlap> {
    let naive = Naive::new(defect);
    let meta = create_meta(&naive).await;
    let stores = (0..CLIENTS).map(|_| Arc::new(naive.client()) as Arc<dyn Store>).collect();
    let expire = Box::new(move |slot: &Slot| naive.expire(slot));
    History::new(faulty(stores, seed), Habit::Sound, expire, meta, seed).run(400).await
}

async fn in_files(directory: &Path, habit: Habit, seed: u64) -> Result<Tally, Overlap> {
    let url: StoreUrl = format!("file:{}", directory.display()).parse().unwrap();
    let namespace: Namespace = format!("seed-{seed}").parse().unwrap();
    let mut opened = Vec::new();
    for _ in 0..CLIENTS {
        opened.push(FileStore::open(&url, &namespace, Copied::Refuse).await.unwrap());
    }
    let meta = create_meta(&opened[0]).await;
    let stores = opened.iter().map(|store| Arc::new(store.clone()) as Arc<dyn Store>).collect();
    let expire = Box::new(move |slot: &Slot| opened.iter().for_each(|store| store.abandon(slot)));
    History::new(faulty(stores, seed), habit, expire, meta, seed).run(300).await
}

/// Adds up histories, and fails at the first overlap with its seed.
fn add(sum: &mut Tally, seed: u64, history: Result<Tally, Overlap>) {
    let tally = history.unwrap_or_else(|overlap| panic!("seed {seed}: {overlap}"));
    sum.tenures += tally.tenures;
    sum.extended += tally.extended;
    sum.lost += tally.lost;
    sum.released += tally.released;
    sum.uses += tally.uses;
    sum.faults.requests_lost += tally.faults.requests_lost;
    sum.faults.replies_lost += tally.faults.replies_lost;
    sum.faults.twice += tally.faults.twice;
    sum.faults.late += tally.faults.late;
}

/// A history in which nothing happens proves nothing.
fn is_eventful(sum: &Tally, seeds: &Range<u64>) {
    let least = (seeds.end - seeds.start) * 5;
    let faults = &sum.faults;
    let all = [sum.tenures, sum.extended, sum.lost, sum.released, sum.uses];
    let hurt = [faults.requests_lost, faults.replies_lost, faults.twice, faults.late];
    assert!(all.iter().chain(&hurt).all(|count| *count >= least), "too quiet: {sum:?}");
}

#[tokio::test]
async fn in_memory_no_time_is_used_twice() {
    let (seeds, mut sum) = (0..300, Tally::default());
    for seed in seeds.clone() {
        add(&mut sum, seed, in_memory(Habit::Sound, seed).await);
    }
    println!("seeds {seeds:?}: {sum:?}");
    is_eventful(&sum, &seeds);
}

#[tokio::test]
async fn in_files_no_time_is_used_twice() {
    let memory = Path::new("/dev/shm");
    // In memory where there is such a place: what is tested here is not the disk.
    let home = match memory.is_dir() {
        true => tempfile::tempdir_in(memory).unwrap(),
        false => tempfile::tempdir().unwrap(),
    };
    let (seeds, mut sum) = (0..20, Tally::default());
    for seed in seeds.clone() {
        add(&mut sum, seed, in_files(home.path(), Habit::Sound, seed).await);
    }
    println!("seeds {seeds:?}: {sum:?}");
    is_eventful(&sum, &seeds);
    // The control of this very combination.
    let mut caught = 0;
    for seed in 100..120 {
        caught += u32::from(in_files(home.path(), Habit::UsesWhatItAsked, seed).await.is_err());
    }
    println!("seeds 100..120: {caught} histories of a hasty client were caught");
    assert!(caught > 0);
}

#[tokio::test]
async fn clients_that_break_a_rule_are_caught() {
    for habit in [Habit::UsesWhatItAsked, Habit::ResumesAfterRelease, Habit::StartsFromTheClock] {
        let mut caught = 0;
        for seed in 0..300 {
            caught += u32::from(in_memory(habit, seed).await.is_err());
        }
        println!("seeds 0..300: {habit:?} was caught in {caught}");
        assert!(caught >= 10, "{habit:?} was caught in {caught} of 300");
    }
}

#[tokio::test]
async fn stores_that_break_a_rule_are_caught() {
    let (seeds, mut sum) = (0..300, Tally::default());
    for seed in seeds.clone() {
        add(&mut sum, seed, in_naive(None, seed).await);
    }
    println!("seeds {seeds:?}: {sum:?}");
    is_eventful(&sum, &seeds);
    let defects = [
        Defect::TakesIfFree,
        Defect::WritesWithoutComparing,
        Defect::ReleasesAnyones,
        Defect::FloorIsLastRenewal,
        Defect::FloorIsNow,
        Defect::RecordsThePast,
        Defect::LateExtendLowers,
    ];
    for defect in defects {
        let mut caught = 0;
        for seed in seeds.clone() {
            caught += u32::from(in_naive(Some(defect), seed).await.is_err());
        }
        println!("seeds {seeds:?}: {defect:?} was caught in {caught}");
        assert!(caught >= 10, "{defect:?} was caught in {caught} of 300");
    }
}
