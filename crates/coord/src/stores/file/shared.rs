//! The state of an open directory, and what is read from it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use super::Purpose;
use super::cell::{Cell, LockedCell, if_there};
use super::directory::{self, Allowed, Copied, OpenMode, Opened, Place};
use super::watch::Watches;
use crate::error::ErrorKind;
use crate::error::Failure;
use crate::finding::Finding;
use crate::namespace::Namespace;
use crate::nonce::Nonce;
use crate::record::{Meta, Version, Versioned, parse_meta};
use crate::slot::{Group, Slot};
use crate::store::{Changes, Entry, Found, Look, Presence, Put, Watched};
use crate::sync::lock;

pub(super) struct Shared {
    /// The namespace's own directory.
    pub(super) root: PathBuf,
    /// How the store is called in messages.
    pub(super) name: String,
    pub(super) purpose: Purpose,
    /// Whether it was only looked into: a directory that is not there is an empty one then.
    is_look: bool,
    allowed: Allowed,
    pub(super) weaknesses: Vec<Finding>,
    /// Locked during every write to a slot: no write may outlive the lock on its slot.
    writing: Mutex<()>,
    /// Locked for moments.
    known: Mutex<Known>,
    watches: Watches,
}

/// What the store knows of itself.
pub(super) struct Known {
    /// The directory at the path when it was last looked at; `None` until it is written to.
    opened: Option<Arc<Opened>>,
    /// The slots that this store is present in.
    pub(super) present: HashMap<Slot, Holding>,
}

/// A slot whose record this store wrote for a holder.
#[derive(Clone)]
pub(super) struct Holding {
    pub(super) nonce: Nonce,
    /// `None` if presence ended without the holder's doing.
    pub(super) locked: Option<Arc<LockedCell>>,
    /// Where it was written.
    pub(super) directory: Arc<Opened>,
}

impl Shared {
    pub(super) fn open(
        root: PathBuf,
        name: String,
        allowed: Allowed,
        purpose: Purpose,
        open_mode: OpenMode,
    ) -> Result<Self, Failure> {
        let weaknesses = directory::prepare(&root, allowed, open_mode)?;
        let is_look = open_mode == OpenMode::Look;
        let opened = if is_look { None } else { Some(Arc::new(Opened::at(&root)?)) };
        let known = Mutex::new(Known { opened, present: HashMap::new() });
        let (writing, watches) = (Mutex::default(), Watches::default());
        Ok(Self { root, name, purpose, is_look, allowed, weaknesses, writing, known, watches })
    }

    pub(super) fn known(&self) -> MutexGuard<'_, Known> {
        lock(&self.known)
    }

    pub(super) fn writing(&self) -> MutexGuard<'_, ()> {
        lock(&self.writing)
    }

    /// The directory to act in: the one that was opened, or the one that has taken its place, if it
    /// is no copy.
    pub(super) fn enter(&self) -> Result<Arc<Opened>, Failure> {
        let mut known = self.known();
        if let Some(opened) = &known.opened {
            match opened.place(&self.root)? {
                Place::Same => return Ok(opened.clone()),
                Place::Away => {
                    let why = format!("{} is not there: is it mounted?", self.root.display());
                    return Err(Failure::Definite(ErrorKind::Unavailable, why.into()));
                }
                Place::Replaced => {
                    let open_mode = OpenMode::Use(Copied::Refuse);
                    directory::prepare(&self.root, self.allowed, open_mode)?;
                    tracing::warn!(
                        directory = %self.root.display(),
                        "the directory was replaced: every lease in the old one ends"
                    );
                }
            }
        }
        let opened = Arc::new(Opened::at(&self.root)?);
        known.opened = Some(opened.clone());
        Ok(opened)
    }

    /// As [`enter`](Self::enter), but whoever only looks takes what is there.
    pub(super) fn enter_to_read(&self) -> Result<(), Failure> {
        if self.is_look { Ok(()) } else { self.enter().map(drop) }
    }

    pub(super) fn cell(&self, slot: &Slot) -> Cell {
        Cell::new(&self.root.join(slot.group().letter()), slot.name())
    }

    pub(super) fn meta_cell(&self) -> Cell {
        Cell::new(&self.root, "meta")
    }

    pub(super) fn meta(&self) -> Result<Option<Versioned<Meta>>, Failure> {
        let meta = read_meta(&self.root)?;
        // A directory without anything has not forgotten: it may be about to be filled.
        if meta.is_none() && !self.is_look {
            directory::require_identity(&self.root)?;
        }
        Ok(meta)
    }

    /// See [`Store::neighbours`](crate::store::Store::neighbours).
    pub(super) fn neighbours(&self, most: usize) -> Result<Vec<(Namespace, Meta)>, Failure> {
        let Some(parent) = self.root.parent() else { return Ok(Vec::new()) };
        let mut found = Vec::new();
        for entry in std::fs::read_dir(parent)?.take(most) {
            let path = entry?.path();
            let name = path.file_name().and_then(|name| name.to_str()?.parse().ok());
            if let (Some(name), Ok(Some(meta))) = (name, read_meta(&path))
                && path != self.root
            {
                found.push((name, meta.value));
            }
        }
        Ok(found)
    }

    pub(super) fn put_meta(&self, expected: Option<Version>, meta: &Meta) -> Result<Put, Failure> {
        self.enter()?;
        let locked = self.meta_cell().lock_patiently()?;
        let old = self.meta()?.map(|meta| meta.version);
        if old != expected {
            return Ok(Put::Conflict);
        }
        Ok(Put::Done(locked.write(old.unwrap_or_default(), meta)?))
    }

    pub(super) fn read(&self, slots: &[Slot]) -> Result<Look, Failure> {
        self.enter_to_read()?;
        let meta = self.meta()?;
        let entries = slots.iter().map(|slot| self.entry(slot)).collect::<Result<_, _>>()?;
        Ok(Look { meta, entries, ..Look::default() })
    }

    pub(super) fn entry(&self, slot: &Slot) -> Result<Entry, Failure> {
        let cell = self.cell(slot);
        let is_locked = cell.is_locked()?;
        let (version, found) = cell.find()?;
        let mut entry = Entry { slot: slot.clone(), version, found, presence: Presence::Free };
        if is_locked && !self.has_lapsed(&entry) {
            entry.presence = Presence::Held { expires_in: None };
        }
        Ok(entry)
    }

    /// Whether the holder in a record is of this process and is not present any more. The lock is
    /// somebody else's then who has not written yet, or a process's that is being started.
    fn has_lapsed(&self, entry: &Entry) -> bool {
        let lapsed = |of: &Holding| of.locked.is_none() && entry.nonce() == Some(of.nonce);
        self.known().present.get(&entry.slot).is_some_and(lapsed)
    }

    /// The slot that carries a nonce which this process wrote.
    pub(super) fn served(&self, nonce: Nonce) -> Result<Option<Entry>, Failure> {
        let known = self.known();
        let mut present = known.present.iter();
        let slot = present.find(|(_, of)| of.nonce == nonce).map(|(slot, _)| slot.clone());
        drop(known);
        let entry = slot.map(|slot| self.entry(&slot)).transpose()?;
        Ok(entry.filter(|entry| entry.nonce() == Some(nonce)))
    }

    /// Whether somebody is present in a slot; without a look where this process is.
    pub(super) fn is_held(&self, slot: &Slot) -> Result<bool, Failure> {
        let is_ours = self.known().present.get(slot).is_some_and(|of| of.locked.is_some());
        Ok(is_ours || self.cell(slot).is_locked()?)
    }

    pub(super) fn list(&self, group: Group) -> Result<Vec<Entry>, Failure> {
        let names = directory::slot_names(&self.root.join(group.letter()));
        let names = if self.is_look { if_there(names)?.unwrap_or_default() } else { names? };
        let slots = names.iter().filter_map(|name| Slot::named(group, name).ok());
        let entries = slots.map(|slot| self.entry(&slot)).collect::<Result<Vec<_>, _>>()?;
        // An empty lock file without a record: somebody was about to use the slot for the first
        // time.
        Ok(entries.into_iter().filter(|entry| entry.found != Found::New).collect())
    }

    pub(super) fn watch(&self, watched: &Watched) -> Result<Changes, Failure> {
        let directory = self.root.join(watched.group().letter());
        let only = match watched {
            Watched::Group(_) => None,
            Watched::Slot(slot) => Some(slot.name()),
        };
        Ok(self.watches.listen(&directory, only)?)
    }

    /// See [`Store::is_in_place`](crate::store::Store::is_in_place).
    pub(super) fn is_in_place(&self, slot: &Slot, nonce: Nonce) -> bool {
        let known = self.known();
        let holding = known.present.get(slot).filter(|holding| holding.nonce == nonce);
        let directory = holding.map(|holding| holding.directory.clone());
        drop(known);
        // A directory that cannot be looked at is an outage.
        directory.is_some_and(|opened| !matches!(opened.place(&self.root), Ok(Place::Replaced)))
    }
}

/// The meta record in the directory of a namespace.
fn read_meta(root: &Path) -> Result<Option<Versioned<Meta>>, Failure> {
    let Some(bytes) = Cell::new(root, "meta").read()? else { return Ok(None) };
    let file = root.join("meta");
    Ok(Some(parse_meta(&bytes, format_args!("rm {}", file.display()))?))
}
