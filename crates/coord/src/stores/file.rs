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
mod free_slots;
mod guarantees;
mod shared;
mod watch;

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;

use self::directory::Allowed;
pub use self::directory::Copied;
pub(crate) use self::directory::OpenMode;
pub(crate) use self::guarantees::Purpose;
use self::shared::Shared;
use crate::error::{Error, ErrorKind, Failure, Reason};
use crate::finding::{Finding, sentences};
use crate::guarantees::Guarantees;
use crate::namespace::Namespace;
use crate::nonce::Nonce;
use crate::record::{Meta, Version};
use crate::slot::{Group, Slot};
use crate::store::{
    Changes, Commit, Committed, Entry, FreeSlots, Look, Put, Store, Wanted, Watched,
};
use crate::timing::Timing;
use crate::url::StoreUrl;

/// Coordinates the processes of one machine through a directory. Clones share their locks.
#[derive(Clone)]
pub struct FileStore {
    namespace: Namespace,
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
        Self::enter(url, place, namespace, OpenMode::Use(copied)).await
    }

    /// Opens a directory for a URL that may be another's; creates it unless it is only looked into.
    pub(crate) async fn enter(
        url: &StoreUrl,
        place: Place,
        namespace: &Namespace,
        open_mode: OpenMode,
    ) -> Result<Self, Error> {
        let name = url.to_string();
        let root = Path::new(&place.directory).join(namespace.as_str());
        let is_allowed = |option| url.option(option) == Some("allow");
        let allowed = Allowed {
            any_filesystem: is_allowed("unsafe_filesystem"),
            any_owner: is_allowed("unsafe_owner"),
        };
        let shared = blocking(move || {
            Shared::open(root, name.clone(), allowed, place.purpose, open_mode)
                .map_err(|failure| failure.into_error("open the directory", &name))
        });
        Ok(Self { namespace: namespace.clone(), shared: Arc::new(shared.await?) })
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
        work: impl FnOnce(&Shared) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Error> {
        let shared = self.shared.clone();
        blocking(move || work(&shared).map_err(|failure| failure.into_error(act, &shared.name)))
            .await
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        let kind = match error.kind() {
            io::ErrorKind::PermissionDenied => ErrorKind::Denied,
            io::ErrorKind::InvalidInput => ErrorKind::InvalidConfig,
            _ => ErrorKind::Unavailable,
        };
        Self::Definite(kind, Reason::of(error))
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        // Only the end of the runtime cancels a blocking task.
        Err(error) => Err(Error::of(ErrorKind::Unknown, "work", "file", Reason::of(error))),
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
        self.shared.is_in_place(slot, nonce)
    }

    fn changes_max(&self) -> usize {
        CHANGES_MAX
    }

    async fn read(&self, slots: &[Slot]) -> Result<Look, Error> {
        let slots = slots.to_vec();
        self.act("read", move |shared| shared.read(&slots)).await
    }

    async fn list(&self, group: Group) -> Result<Vec<Entry>, Error> {
        let list = move |shared: &Shared| {
            shared.enter_to_read()?;
            shared.list(group)
        };
        self.act("list slots", list).await
    }

    async fn free_slots(&self, wanted: &Wanted) -> Result<FreeSlots, Error> {
        let wanted = wanted.clone();
        let look = move |shared: &Shared| shared.free_slots(&wanted, CHANGES_MAX);
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

    async fn neighbours(&self, most: usize) -> Result<Vec<(Namespace, Meta)>, Error> {
        self.act("list the namespaces", move |shared| shared.neighbours(most)).await
    }

    fn namespace(&self) -> Option<&Namespace> {
        Some(&self.namespace)
    }

    async fn watch(&self, watched: &Watched) -> Result<Changes, Error> {
        let watched = watched.clone();
        self.act("watch", move |shared| shared.watch(&watched)).await
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
