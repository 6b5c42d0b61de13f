//! A store that fails, hangs and loses replies when a test wants it to.

use std::fmt;
use std::future::pending;
use std::sync::{Mutex, MutexGuard};

use async_trait::async_trait;
use frazil_coord::stores::memory::MemoryStore;
use frazil_coord::{
    Acquired, Ask, Changes, Claim, Entry, Error, ErrorKind, Extended, Group, Guarantees, Meta, Put,
    Record, Released, Slot, Store, Tenure, UnixMs, Version, Versioned,
};

use crate::lane::{Diary, Event};

pub(crate) struct MoodyStore {
    store: MemoryStore,
    diary: Diary,
    mood: Mutex<Mood>,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Mood {
    /// Nothing is carried out.
    pub(crate) fails: bool,
    /// An acquisition is carried out, and its reply is lost; then nothing is carried out.
    pub(crate) loses_acquire: bool,
    pub(crate) hangs_in_extend: bool,
    pub(crate) hangs_in_release: bool,
}

impl MoodyStore {
    pub(crate) fn new(store: MemoryStore, diary: Diary) -> Self {
        Self { store, diary, mood: Mutex::default() }
    }

    pub(crate) fn mood(&self) -> MutexGuard<'_, Mood> {
        self.mood.lock().unwrap()
    }

    fn ask(&self, act: &'static str) -> Result<(), Error> {
        let event = if act == "release" { Event::Release } else { Event::Asked(act) };
        self.diary.lock().unwrap().push(event);
        match self.mood().fails {
            true => Err(Error::new(ErrorKind::Unavailable, act, self, "in a bad mood")),
            false => Ok(()),
        }
    }
}

#[async_trait]
impl Store for MoodyStore {
    fn guarantees(&self) -> Guarantees {
        self.store.guarantees()
    }

    async fn meta(&self) -> Result<Option<Versioned<Meta>>, Error> {
        self.ask("meta")?;
        self.store.meta().await
    }

    async fn put_meta(&self, expected: Option<Version>, meta: &Meta) -> Result<Put, Error> {
        self.ask("put meta")?;
        self.store.put_meta(expected, meta).await
    }

    async fn list(&self, group: Group) -> Result<Vec<Entry>, Error> {
        self.ask("list")?;
        self.store.list(group).await
    }

    async fn acquire(&self, claim: &Claim) -> Result<Acquired, Error> {
        self.ask("acquire")?;
        let acquired = self.store.acquire(claim).await;
        let mut mood = self.mood();
        if mood.loses_acquire {
            *mood = Mood { loses_acquire: false, fails: true, ..*mood };
            return Err(Error::new(ErrorKind::Unknown, "acquire", self, "the reply is lost"));
        }
        acquired
    }

    async fn extend(&self, tenure: &Tenure, ask: &Ask) -> Result<Extended, Error> {
        self.ask("extend")?;
        if self.mood().hangs_in_extend {
            pending::<()>().await;
        }
        self.store.extend(tenure, ask).await
    }

    async fn release(&self, tenure: &Tenure, last: UnixMs) -> Result<Released, Error> {
        self.ask("release")?;
        if self.mood().hangs_in_release {
            pending::<()>().await;
        }
        self.store.release(tenure, last).await
    }

    async fn put(&self, slot: &Slot, expected: Version, record: &Record) -> Result<Put, Error> {
        self.ask("put")?;
        self.store.put(slot, expected, record).await
    }

    async fn watch(&self, group: Group) -> Result<Changes, Error> {
        self.ask("watch")?;
        self.store.watch(group).await
    }
}

impl fmt::Display for MoodyStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("memory: with moods")
    }
}

impl fmt::Debug for MoodyStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
