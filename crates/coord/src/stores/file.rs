//! A directory on a local disk: coordination between the processes of one machine.
//!
//! Each slot has two files. The lock file says who is present: a process holds the kernel's lock
//! on it, exactly until it lets go or dies. The record file is replaced as a whole. Once the slot
//! was used the lock file is not empty, so that a record that is gone can be told from one that
//! never was; it is removed only with a slot that is forgotten, by who has it locked.
//!
//! ```text
//! DIRECTORY/NAMESPACE/identity      which directory this is, to notice a copy
//! DIRECTORY/NAMESPACE/meta          the namespace's meta record
//! DIRECTORY/NAMESPACE/w/7           the record of worker 7
//! DIRECTORY/NAMESPACE/w/.7.lock     its lock
//! ```

mod cell;
mod commit;
mod directory;
mod promise;
mod vacancies;
mod watch;

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use serde::Deserialize;

use self::cell::{Cell, LockedCell};
pub use self::directory::Copied;
pub(crate) use self::directory::Entrance;
use self::directory::Opened;
pub(crate) use self::promise::Purpose;
use crate::error::{Error, ErrorKind};
use crate::finding::{Finding, sentences};
use crate::guarantees::Guarantees;
use crate::namespace::Namespace;
use crate::nonce::Nonce;
use crate::record::{FORMAT, Meta, Version, Versioned};
use crate::slot::{Group, Slot};
use crate::store::{
    Changes, Commit, Committed, Entry, Found, History, Look, Presence, Put, Store, Vacancies,
    Wanted, Watched,
};
use crate::timing::Timing;
use crate::url::StoreUrl;

/// Coordinates the processes of one machine through a directory. Clones share their locks.
#[derive(Clone)]
pub struct FileStore {
    shared: Arc<Shared>,
}

/// How many changes a commit tries: each costs microseconds, and in a crowd few of them are taken by
/// others between a look and the commit.
const CHANGES_MAX: usize = 8;

/// Which directory, and what for.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) directory: String,
    pub(crate) purpose: Purpose,
}

struct Shared {
    /// The namespace's own directory.
    root: PathBuf,
    /// How the store is called in messages.
    name: String,
    purpose: Purpose,
    /// Whether it was only looked into: a directory that is not there is an empty one then.
    is_look: bool,
    any_filesystem: bool,
    weaknesses: Vec<Finding>,
    /// Locked during every write to a slot: no write may outlive the lock on its slot.
    writing: Mutex<()>,
    /// Locked for moments.
    known: Mutex<Known>,
}

/// What the store knows of itself.
#[derive(Default)]
struct Known {
    /// The directory at the path when it was last looked at; `None` until it is written to.
    opened: Option<Arc<Opened>>,
    /// The slots that this store is present in.
    present: HashMap<Slot, Holding>,
}

/// A slot whose record this store wrote for a holder.
#[derive(Clone)]
struct Holding {
    nonce: Nonce,
    /// `None` if presence ended without the holder's doing.
    locked: Option<Arc<LockedCell>>,
    /// Where it was written.
    directory: Arc<Opened>,
}

impl FileStore {
    /// Opens the directory that the URL names, and creates it if need be.
    ///
    /// # Errors
    /// If it cannot be created or written, if its file system is not known to keep locks and
    /// renames, or if it is a copy of another one and `copied` does not accept that.
    pub async fn open(
        url: &StoreUrl,
        namespace: &Namespace,
        copied: Copied,
    ) -> Result<Self, Error> {
        let place = Place { directory: url.path.clone(), purpose: Purpose::Shared };
        Self::enter(url, place, namespace, Entrance::Use(copied)).await
    }

    /// Opens a directory for a URL that may be another's; creates it unless it is only looked into.
    pub(crate) async fn enter(
        url: &StoreUrl,
        place: Place,
        namespace: &Namespace,
        entrance: Entrance,
    ) -> Result<Self, Error> {
        let name = url.to_string();
        let root = Path::new(&place.directory).join(namespace.as_str());
        let any_filesystem = url.option("unsafe_filesystem") == Some("allow");
        let shared = blocking(move || {
            let weaknesses = directory::prepare(&root, any_filesystem, entrance)
                .map_err(|(kind, why)| Error::new(kind, "open the directory", &name, why))?;
            let shared = Shared {
                root,
                name,
                purpose: place.purpose,
                is_look: entrance == Entrance::Look,
                any_filesystem,
                weaknesses,
                writing: Mutex::default(),
                known: Mutex::default(),
            };
            if !shared.is_look {
                let opened = Opened::at(&shared.root).map_err(|error| {
                    Trouble::from(error).into_error("open the directory", &shared.name)
                })?;
                shared.known().opened = Some(Arc::new(opened));
            }
            Ok(shared)
        });
        Ok(Self { shared: Arc::new(shared.await?) })
    }

    /// Gives up the presence in a slot without a word, as the kernel does for a process that died.
    /// For tests.
    pub fn abandon(&self, slot: &Slot) {
        if let Some(holding) = self.shared.known().present.get_mut(slot) {
            holding.locked = None;
        }
    }

    /// Does something on a thread that may block.
    async fn act<T: Send + 'static>(
        &self,
        act: &'static str,
        work: impl FnOnce(&Shared) -> Result<T, Trouble> + Send + 'static,
    ) -> Result<T, Error> {
        let shared = self.shared.clone();
        blocking(move || work(&shared).map_err(|trouble| trouble.into_error(act, &shared.name)))
            .await
    }
}

/// What can go wrong on the way.
#[derive(Debug)]
enum Trouble {
    Io(io::Error),
    Kind(ErrorKind, String),
}

/// Of meta, what every format has.
#[derive(Deserialize)]
struct Format {
    format: u32,
}

impl Trouble {
    fn into_error(self, act: &'static str, store: &str) -> Error {
        match self {
            Self::Io(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                Error::new(ErrorKind::Denied, act, store, error)
            }
            Self::Io(error) if error.kind() == io::ErrorKind::InvalidInput => {
                Error::new(ErrorKind::InvalidConfig, act, store, error)
            }
            Self::Io(error) => Error::new(ErrorKind::Unavailable, act, store, error),
            Self::Kind(kind, why) => Error::new(kind, act, store, why),
        }
    }
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        // Only the end of the runtime cancels a blocking task.
        Err(error) => Err(Error::new(ErrorKind::Unknown, "work", "file", error)),
    }
}

impl Shared {
    fn known(&self) -> MutexGuard<'_, Known> {
        // A panic leaves it as it was: entries are whole.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn writing(&self) -> MutexGuard<'_, ()> {
        self.writing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The directory to act in: the one that was opened, or the one that has taken its place, if it
    /// is no copy.
    fn enter(&self) -> Result<Arc<Opened>, Trouble> {
        let mut known = self.known();
        if let Some(opened) = &known.opened {
            match opened.place(&self.root)? {
                directory::Place::Same => return Ok(opened.clone()),
                directory::Place::Away => {
                    let why = format!("{} is not there: is it mounted?", self.root.display());
                    return Err(Trouble::Kind(ErrorKind::Unavailable, why));
                }
                directory::Place::Replaced => {
                    tracing::warn!(
                        directory = %self.root.display(),
                        "the directory was replaced: every lease in the old one ends"
                    );
                    let entrance = Entrance::Use(Copied::Refuse);
                    directory::prepare(&self.root, self.any_filesystem, entrance)
                        .map_err(|(kind, why)| Trouble::Kind(kind, why))?;
                }
            }
        }
        let opened = Arc::new(Opened::at(&self.root)?);
        known.opened = Some(opened.clone());
        Ok(opened)
    }

    /// As [`enter`](Self::enter), but whoever only looks takes what is there.
    fn enter_to_read(&self) -> Result<(), Trouble> {
        if self.is_look { Ok(()) } else { self.enter().map(drop) }
    }

    fn cell(&self, slot: &Slot) -> Cell {
        Cell::new(&self.root.join(slot.group().letter()), slot.name())
    }

    fn meta_cell(&self) -> Cell {
        Cell::new(&self.root, "meta")
    }

    fn meta(&self) -> Result<Option<Versioned<Meta>>, Trouble> {
        let corrupt = |why| Trouble::Kind(ErrorKind::Corrupt, format!("meta: {why}"));
        let Some(bytes) = self.meta_cell().read()? else {
            // A directory without anything has not forgotten: it may be about to be filled.
            if !self.is_look {
                directory::require_identity(&self.root)?;
            }
            return Ok(None);
        };
        // First, since nothing else is known of a newer format.
        let Format { format } =
            serde_json::from_slice(&bytes).map_err(|error| corrupt(error.to_string()))?;
        if format > FORMAT {
            let why = format!("format {format}, this version knows {FORMAT}");
            return Err(Trouble::Kind(ErrorKind::NewerFormat, why));
        }
        let stored: cell::Stored<Meta> =
            serde_json::from_slice(&bytes).map_err(|error| corrupt(error.to_string()))?;
        Ok(Some(Versioned { version: stored.version, value: stored.value }))
    }

    fn put_meta(&self, expected: Option<Version>, meta: &Meta) -> Result<Put, Trouble> {
        self.enter()?;
        let locked = self.meta_cell().lock_patiently()?;
        let old = self.meta()?.map(|meta| meta.version);
        if old != expected {
            return Ok(Put::Conflict);
        }
        Ok(Put::Done(locked.write(old.unwrap_or_default(), meta)?))
    }

    fn look(meta: Option<Versioned<Meta>>, entries: Vec<Entry>) -> Look {
        Look { meta, entries, clock: None, history: History::default() }
    }

    fn read(&self, slots: &[Slot]) -> Result<Look, Trouble> {
        self.enter_to_read()?;
        let meta = self.meta()?;
        let entries = slots.iter().map(|slot| self.entry(slot)).collect::<Result<_, _>>()?;
        Ok(Self::look(meta, entries))
    }

    fn entry(&self, slot: &Slot) -> Result<Entry, Trouble> {
        let cell = self.cell(slot);
        let presence = match cell.is_locked()? {
            true => Presence::Held { expires_in: None },
            false => Presence::Free,
        };
        let (version, found) = cell.find()?;
        Ok(Entry { slot: slot.clone(), version, found, presence })
    }

    /// The slot that carries a nonce which this process wrote.
    fn served(&self, nonce: Nonce) -> Result<Option<Entry>, Trouble> {
        let known = self.known();
        let mut present = known.present.iter();
        let slot = present.find(|(_, of)| of.nonce == nonce).map(|(slot, _)| slot.clone());
        drop(known);
        let entry = slot.map(|slot| self.entry(&slot)).transpose()?;
        Ok(entry.filter(|entry| entry.nonce() == Some(nonce)))
    }

    /// Whether somebody is present in a slot; without a look where this process is.
    fn is_held(&self, slot: &Slot) -> Result<bool, Trouble> {
        let is_ours = self.known().present.get(slot).is_some_and(|of| of.locked.is_some());
        Ok(is_ours || self.cell(slot).is_locked()?)
    }

    fn list(&self, group: Group) -> Result<Vec<Entry>, Trouble> {
        let names = match directory::slot_names(&self.root.join(group.letter())) {
            Err(error) if self.is_look && error.kind() == io::ErrorKind::NotFound => {
                return Ok(Vec::new());
            }
            names => names?,
        };
        let slots = names.iter().filter_map(|name| Slot::named(group, name).ok());
        let entries = slots.map(|slot| self.entry(&slot)).collect::<Result<Vec<_>, _>>()?;
        // An empty lock file without a record: somebody was about to use the slot for the first
        // time.
        Ok(entries.into_iter().filter(|entry| entry.found != Found::New).collect())
    }
}

#[async_trait]
impl Store for FileStore {
    fn guarantees(&self) -> Guarantees {
        self.shared.purpose.guarantees(sentences(&self.shared.weaknesses))
    }

    async fn diagnose(&self, _timing: &Timing) -> Result<Vec<Finding>, Error> {
        Ok(self.shared.weaknesses.clone())
    }

    fn is_bound_to_process(&self) -> bool {
        true
    }

    fn is_in_place(&self, slot: &Slot, nonce: Nonce) -> bool {
        let known = self.shared.known();
        let holding = known.present.get(slot).filter(|holding| holding.nonce == nonce);
        let directory = holding.map(|holding| holding.directory.clone());
        drop(known);
        // A directory that cannot be looked at is an outage.
        directory.is_some_and(|directory| {
            !matches!(directory.place(&self.shared.root), Ok(directory::Place::Replaced))
        })
    }

    fn changes_max(&self) -> usize {
        CHANGES_MAX
    }

    async fn read(&self, slots: &[Slot]) -> Result<Look, Error> {
        let slots = slots.to_vec();
        let read = self.act("read", move |shared| shared.read(&slots)).await;
        let file = self.shared.root.join("meta");
        read.map_err(|error| error.with_way_out(format_args!("rm {}", file.display())))
    }

    async fn list(&self, group: Group) -> Result<Vec<Entry>, Error> {
        let list = move |shared: &Shared| {
            shared.enter_to_read()?;
            shared.list(group)
        };
        self.act("list slots", list).await
    }

    async fn vacancies(&self, wanted: &Wanted) -> Result<Vacancies, Error> {
        let wanted = wanted.clone();
        let look = move |shared: &Shared| shared.vacancies(&wanted, CHANGES_MAX);
        self.act("look for free workers", look).await
    }

    async fn commit(&self, commit: &Commit) -> Result<Committed, Error> {
        let commit = commit.clone();
        self.act(commit.act.word(), move |shared| shared.commit(&commit)).await
    }

    async fn put_meta(&self, expected: Option<Version>, meta: &Meta) -> Result<Put, Error> {
        let meta = meta.clone();
        self.act("write meta", move |shared| shared.put_meta(expected, &meta)).await
    }

    async fn forget(&self, slot: &Slot, version: Version) -> Result<Put, Error> {
        let slot = slot.clone();
        self.act("forget", move |shared| shared.forget(&slot, version)).await
    }

    async fn watch(&self, watched: &Watched) -> Result<Changes, Error> {
        let directory = self.shared.root.join(watched.group().letter());
        let only = match watched {
            Watched::Group(_) => None,
            Watched::Slot(slot) => Some(slot.name()),
        };
        watch::changes(&directory, only)
            .map_err(|error| Error::new(ErrorKind::Unavailable, "watch", self, error))
    }
}

impl fmt::Display for FileStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shared.name)
    }
}

impl fmt::Debug for FileStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
