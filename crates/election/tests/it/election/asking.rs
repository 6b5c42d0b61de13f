//! What is asked of the store when a leadership is handed over.

use std::fmt;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use frazil_coord::MemoryStore;
use frazil_coord::{
    Changes, Commit, Committed, Entry, Error, FreeSlots, Group, Guarantees, Look, Meta, Presence,
    Put, Slot, Store, Version, Wanted, Watched,
};
use frazil_election::{Candidate, Elections};

use crate::stage::{settings, soon};

const SHOWED_IT_FREE: &str = "showed a slot that is free";

/// A store that writes down what it was asked to write, and when it showed a slot that is free.
#[derive(Debug)]
struct Diary {
    store: MemoryStore,
    acts: Mutex<Vec<&'static str>>,
}

impl Diary {
    fn of(store: &MemoryStore) -> Arc<Self> {
        Arc::new(Self { store: store.clone(), acts: Mutex::default() })
    }

    fn note(&self, act: &'static str) {
        self.acts.lock().unwrap().push(act);
    }

    /// Up to the first acquisition.
    fn acts_of_claim(&self) -> Vec<&'static str> {
        let acts = self.acts.lock().unwrap();
        acts.iter().copied().take_while(|act| *act != "acquire").collect()
    }
}

#[async_trait]
impl Store for Diary {
    fn guarantees(&self) -> Guarantees {
        self.store.guarantees()
    }

    async fn read(&self, slots: &[Slot]) -> Result<Look, Error> {
        let look = self.store.read(slots).await?;
        if look.entries.iter().any(|entry| entry.presence == Presence::Free) {
            self.note(SHOWED_IT_FREE);
        }
        Ok(look)
    }

    async fn list(&self, group: Group) -> Result<Vec<Entry>, Error> {
        self.store.list(group).await
    }

    async fn free_slots(&self, wanted: &Wanted) -> Result<FreeSlots, Error> {
        self.store.free_slots(wanted).await
    }

    async fn commit(&self, commit: &Commit) -> Result<Committed, Error> {
        self.note(commit.act.word());
        self.store.commit(commit).await
    }

    async fn put_meta(&self, expected: Option<Version>, meta: &Meta) -> Result<Put, Error> {
        self.note("put_meta");
        self.store.put_meta(expected, meta).await
    }

    async fn forget(&self, slot: &Slot, version: Version) -> Result<Put, Error> {
        self.note("forget");
        self.store.forget(slot, version).await
    }

    async fn watch(&self, watched: &Watched) -> Result<Changes, Error> {
        self.store.watch(watched).await
    }
}

impl fmt::Display for Diary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.store.fmt(f)
    }
}

fn candidate(store: Arc<dyn Store>, instance: &str) -> Candidate {
    Elections::new(store).candidate("job", settings(instance)).unwrap()
}

#[tokio::test]
async fn whoever_waits_looks_once_and_takes_what_it_saw() {
    let memory = MemoryStore::new();
    let mut handovers = Vec::new();
    // On a busy machine a moment may pass between the two, and then it looks again.
    for _ in 0..5 {
        let diary = Diary::of(&memory);
        let (first, next) =
            (candidate(Arc::new(memory.clone()), "first"), candidate(diary.clone(), "next"));
        let leader = first.campaign().await.unwrap();
        let mut observer = next.observe();
        let campaign = tokio::spawn(async move { next.campaign().await });
        while soon(observer.changed()).await.is_none() {}
        leader.resign().await.unwrap();
        let next = soon(campaign).await.unwrap().unwrap();
        handovers.push(diary.acts_of_claim());
        next.resign().await.unwrap();
    }
    assert!(handovers.contains(&vec![SHOWED_IT_FREE]), "{handovers:?}");
}
