//! A directory on a local disk: coordination between the processes of one machine.
//!
//! Each slot has two files. The lock file says who is present: a process holds the kernel's lock
//! on it, exactly until it lets go or dies. The record file is replaced as a whole. The lock file
//! is never renamed or removed, and once the slot was used it is not empty, so that a record that
//! is gone can be told from one that never was.
//!
//! ```text
//! DIRECTORY/NAMESPACE/identity      which directory this is, to notice a copy
//! DIRECTORY/NAMESPACE/meta          the namespace's meta record
//! DIRECTORY/NAMESPACE/w/7           the record of worker 7
//! DIRECTORY/NAMESPACE/w/.7.lock     its lock
//! ```

mod cell;
mod directory;
mod pick;
mod promise;
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
pub(crate) use self::promise::Purpose;
use crate::error::{Error, ErrorKind};
use crate::finding::{Finding, sentences};
use crate::guarantees::Guarantees;
use crate::namespace::Namespace;
use crate::nonce::Nonce;
use crate::record::{FORMAT, Meta, Record, UnixMs, Version, Versioned};
use crate::rules;
use crate::slot::{Group, Slot};
use crate::store::{
    Acquired, Ask, Changes, Choice, Claim, Entry, Extended, Found, Loss, Presence, Put, Released,
    Store, Tenure,
};
use crate::timing::Timing;
use crate::url::StoreUrl;

/// Coordinates the processes of one machine through a directory. Clones share their locks.
#[derive(Clone)]
pub struct FileStore {
    shared: Arc<Shared>,
}

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
    weaknesses: Vec<Finding>,
    /// The slots that this store is present in. Locked during every act: no write may outlive the
    /// lock on its slot.
    present: Mutex<HashMap<Slot, (Nonce, LockedCell)>>,
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
            let is_look = entrance == Entrance::Look;
            let purpose = place.purpose;
            Ok(Shared { root, name, purpose, is_look, weaknesses, present: Mutex::default() })
        });
        Ok(Self { shared: Arc::new(shared.await?) })
    }

    /// Gives up the presence in a slot without a word, as the kernel does for a process that died.
    /// For tests.
    pub fn abandon(&self, slot: &Slot) {
        self.shared.present().remove(slot);
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
    fn present(&self) -> MutexGuard<'_, HashMap<Slot, (Nonce, LockedCell)>> {
        // A panic leaves the map as it was: entries are whole.
        self.present.lock().unwrap_or_else(PoisonError::into_inner)
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
            // A directory that is not there has not forgotten anything: it may be unmounted.
            if !self.is_look {
                directory::require(&self.root)?;
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
        let locked = self.meta_cell().lock_patiently()?;
        let old = self.meta()?.map(|meta| meta.version);
        if old != expected {
            return Ok(Put::Conflict);
        }
        Ok(Put::Done(locked.write(old.unwrap_or_default(), meta)?))
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

    fn acquire(&self, claim: &Claim) -> Result<Acquired, Trouble> {
        let mut present = self.present();
        // Before meta is looked at: a claim that was served stays served.
        let served = present.iter().find(|(_, (nonce, _))| *nonce == claim.nonce);
        if let Some((slot, (_, locked))) = served
            && let (version, Found::Known(record)) = locked.find()?
            && record.nonce == Some(claim.nonce)
        {
            return Ok(Acquired::Held(rules::tenure(claim, slot.clone(), version, &record)));
        }
        // Held while the record is written, so that meta cannot move in between.
        let _meta_locked = self.meta_cell().lock_shared_patiently()?;
        if self.meta()?.map(|meta| meta.version) != Some(claim.meta) {
            return Ok(Acquired::MetaMoved);
        }
        match &claim.choice {
            Choice::This(slot, read) => self.take(&mut present, slot, Some(*read), claim),
            Choice::Any { first, last, favourite } => {
                self.pick(&mut present, *first..=*last, *favourite, claim)
            }
        }
    }

    fn extend(&self, tenure: &Tenure, ask: &Ask) -> Result<Extended, Trouble> {
        let mut present = self.present();
        let other = |(nonce, _): &(Nonce, LockedCell)| *nonce != tenure.nonce;
        if present.get(&tenure.slot).is_some_and(other) {
            let (_, found) = self.cell(&tenure.slot).find()?;
            return Ok(Extended::Lost(why_lost(found, tenure, ask)));
        }
        let extended = self.extend_present(&mut present, tenure, ask)?;
        if let Extended::Lost(_) = extended {
            present.remove(&tenure.slot);
        }
        Ok(extended)
    }

    /// Extends a tenure that is present in its slot, or will be if the slot is free.
    fn extend_present(
        &self,
        present: &mut HashMap<Slot, (Nonce, LockedCell)>,
        tenure: &Tenure,
        ask: &Ask,
    ) -> Result<Extended, Trouble> {
        let cell = self.cell(&tenure.slot);
        let (_, found) = cell.find()?;
        // Before a lock file is created for what is gone.
        if self.meta()?.is_none() || !matches!(found, Found::Known(_)) {
            return Ok(Extended::Lost(Loss::Vanished));
        }
        let in_place = match present.get(&tenure.slot) {
            Some((_, locked)) => locked.is_in_place()?,
            None => false,
        };
        if !in_place {
            let Some(locked) = cell.try_lock()? else {
                return Ok(Extended::Lost(why_lost(cell.find()?.1, tenure, ask)));
            };
            present.insert(tenure.slot.clone(), (tenure.nonce, locked));
        }
        let (_, locked) = present.get(&tenure.slot).expect("it is there or was just inserted");
        let (version, found) = locked.find()?;
        let extended = match &found {
            Found::Known(record) => rules::extend(record, tenure, ask),
            Found::New | Found::Lost => Err(Loss::Vanished),
        };
        Ok(match extended {
            Ok(record) => {
                let version = locked.write(version, &record)?;
                let horizon = record.horizon;
                Extended::Held(Tenure { version, horizon, ..tenure.clone() })
            }
            Err(loss) => Extended::Lost(loss),
        })
    }

    fn release(&self, tenure: &Tenure, last: UnixMs) -> Result<Released, Trouble> {
        let mut present = self.present();
        match present.get(&tenure.slot) {
            Some((nonce, _)) if *nonce == tenure.nonce => {}
            _ => return Ok(Released::NotHeld),
        }
        // Presence ends whether or not the record can be written.
        let Some((_, locked)) = present.remove(&tenure.slot) else { return Ok(Released::NotHeld) };
        if !locked.is_in_place()? {
            return Ok(Released::NotHeld);
        }
        let (version, found) = locked.find()?;
        let Found::Known(record) = found else { return Ok(Released::NotHeld) };
        match rules::release(&record, tenure, last) {
            Ok(record) => {
                locked.write_lazily(version, &record)?;
                Ok(Released::Done)
            }
            Err(_) => Ok(Released::NotHeld),
        }
    }

    fn put(&self, slot: &Slot, expected: Version, record: &Record) -> Result<Put, Trouble> {
        let _present = self.present();
        let cell = self.cell(slot);
        if cell.find()?.0 != expected {
            return Ok(Put::Conflict);
        }
        let Some(locked) = cell.try_lock()? else { return Ok(Put::Conflict) };
        let (version, _) = locked.find()?;
        if version != expected {
            return Ok(Put::Conflict);
        }
        Ok(Put::Done(locked.write(version, record)?))
    }
}

/// Why a tenure is over whose slot somebody else has locked.
fn why_lost(found: Found, tenure: &Tenure, ask: &Ask) -> Loss {
    match found {
        Found::Known(record) => match rules::extend(&record, tenure, ask) {
            Err(loss) => loss,
            // The new holder has the lock and is about to write.
            Ok(_) => Loss::Superseded { token: record.token, holder: record.holder },
        },
        Found::New | Found::Lost => Loss::Vanished,
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

    async fn meta(&self) -> Result<Option<Versioned<Meta>>, Error> {
        let read = self.act("read meta", Shared::meta).await;
        let file = self.shared.root.join("meta");
        read.map_err(|error| error.with_way_out(format_args!("rm {}", file.display())))
    }

    async fn put_meta(&self, expected: Option<Version>, meta: &Meta) -> Result<Put, Error> {
        let meta = meta.clone();
        self.act("write meta", move |shared| shared.put_meta(expected, &meta)).await
    }

    async fn list(&self, group: Group) -> Result<Vec<Entry>, Error> {
        self.act("list slots", move |shared| shared.list(group)).await
    }

    async fn acquire(&self, claim: &Claim) -> Result<Acquired, Error> {
        let claim = claim.clone();
        self.act("acquire", move |shared| shared.acquire(&claim)).await
    }

    async fn extend(&self, tenure: &Tenure, ask: &Ask) -> Result<Extended, Error> {
        let (tenure, ask) = (tenure.clone(), *ask);
        self.act("extend", move |shared| shared.extend(&tenure, &ask)).await
    }

    async fn release(&self, tenure: &Tenure, last: UnixMs) -> Result<Released, Error> {
        let tenure = tenure.clone();
        self.act("release", move |shared| shared.release(&tenure, last)).await
    }

    async fn put(&self, slot: &Slot, expected: Version, record: &Record) -> Result<Put, Error> {
        let (slot, record) = (slot.clone(), record.clone());
        self.act("put a record", move |shared| shared.put(&slot, expected, &record)).await
    }

    async fn watch(&self, group: Group) -> Result<Changes, Error> {
        let directory = self.shared.root.join(group.letter());
        watch::changes(&directory)
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
