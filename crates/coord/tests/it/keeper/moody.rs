//! A store that fails, hangs and loses replies when a test wants it to.

use std::fmt;
use std::future::pending;
use std::sync::{Mutex, MutexGuard};

use async_trait::async_trait;
use frazil_coord::MemoryStore;
use frazil_coord::{
    Act, Changes, Commit, Committed, Entry, Error, ErrorKind, FreeSlots, Group, Guarantees, Look,
    Meta, Put, Slot, Store, Version, Wanted, Watched,
};

use super::lane::{Diary, Event};

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

    fn ask(&self, act: Act) -> Result<(), Error> {
        let event = if act == Act::Release { Event::Release } else { Event::Asked(act) };
        self.diary.lock().unwrap().push(event);
        match self.mood().fails {
            true => Err(Error::new(ErrorKind::Unavailable, act.word(), self, "in a bad mood")),
            false => Ok(()),
        }
    }
}

#[async_trait]
impl Store for MoodyStore {
    fn guarantees(&self) -> Guarantees {
        self.store.guarantees()
    }

    async fn read(&self, slots: &[Slot]) -> Result<Look, Error> {
        self.ask(Act::Read)?;
        self.store.read(slots).await
    }

    async fn list(&self, group: Group) -> Result<Vec<Entry>, Error> {
        self.ask(Act::List)?;
        self.store.list(group).await
    }

    async fn free_slots(&self, wanted: &Wanted) -> Result<FreeSlots, Error> {
        self.ask(Act::FreeSlots)?;
        self.store.free_slots(wanted).await
    }

    async fn commit(&self, commit: &Commit) -> Result<Committed, Error> {
        self.ask(commit.act)?;
        let hangs = match commit.act {
            Act::Extend => self.mood().hangs_in_extend,
            Act::Release => self.mood().hangs_in_release,
            _ => false,
        };
        if hangs {
            pending::<()>().await;
        }
        let committed = self.store.commit(commit).await;
        let mut mood = self.mood();
        if mood.loses_acquire && commit.act == Act::Acquire {
            *mood = Mood { loses_acquire: false, fails: true, ..*mood };
            return Err(Error::new(ErrorKind::Unknown, "acquire", self, "the reply is lost"));
        }
        committed
    }

    async fn put_meta(&self, expected: Option<Version>, meta: &Meta) -> Result<Put, Error> {
        self.ask(Act::PutMeta)?;
        self.store.put_meta(expected, meta).await
    }

    async fn forget(&self, slot: &Slot, version: Version) -> Result<Put, Error> {
        self.ask(Act::Forget)?;
        self.store.forget(slot, version).await
    }

    async fn watch(&self, watched: &Watched) -> Result<Changes, Error> {
        self.ask(Act::Watch)?;
        self.store.watch(watched).await
    }

    fn changes_max(&self) -> usize {
        self.store.changes_max()
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
