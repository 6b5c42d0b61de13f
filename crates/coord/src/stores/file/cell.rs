//! One lock file and the file beside it that only the holder of the lock replaces.

use std::fs::{self, File, Metadata, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;

use crate::error::{Failure, Reason};
use crate::record::{Record, Version, Versioned, json};
use crate::store::Found;
use crate::time::{boot_time, unix_ms};

/// Only the owner reads and writes.
pub(super) const FILE_MODE: u32 = 0o600;
/// How long a lock that is held for one write at most is waited for: longer than any disk takes,
/// shorter than what a caller waits for a store.
const PATIENCE: Duration = Duration::from_secs(2);
/// Between two looks at such a lock.
const LOOK_AGAIN: Duration = Duration::from_millis(1);
/// No record is longer; what is, is not ours.
const RECORD_BYTES_MAX: u64 = 1 << 20;

/// The files of a slot, or of meta.
#[derive(Clone, Debug)]
pub(super) struct Cell {
    directory: PathBuf,
    record: PathBuf,
    lock: PathBuf,
    /// The next record while it is written.
    draft: PathBuf,
}

/// A cell that this process has locked. The lock ends with it.
#[derive(Debug)]
pub(super) struct LockedCell {
    cell: Cell,
    lock: File,
}

impl Cell {
    pub(super) fn new(directory: &Path, name: &str) -> Self {
        // No name begins with a dot, so no slot's record can be in the place of another's lock.
        Self {
            directory: directory.into(),
            record: directory.join(name),
            lock: directory.join(format!(".{name}.lock")),
            draft: directory.join(format!(".{name}.draft")),
        }
    }

    /// The content of the record file; cut off where it is longer than any record.
    pub(super) fn read(&self) -> io::Result<Option<Vec<u8>>> {
        let Some(file) = if_there(File::open(&self.record))? else { return Ok(None) };
        let mut bytes = Vec::new();
        file.take(RECORD_BYTES_MAX + 1).read_to_end(&mut bytes)?;
        Ok(Some(bytes))
    }

    /// What is known of the slot.
    pub(super) fn find(&self) -> io::Result<(Version, Found)> {
        let Some(bytes) = self.read()? else {
            let lock = if_there(fs::metadata(&self.lock))?;
            // What is gone has another version than what never was: neither is taken for the other.
            return Ok(match lock.is_some_and(|data| data.len() > 0) {
                true => (fingerprint(&[]), Found::Lost),
                false => (Version(0), Found::New),
            });
        };
        Ok(match serde_json::from_slice::<Versioned<Record>>(&bytes) {
            Ok(stored) => (stored.version, Found::Known(stored.value)),
            Err(_) => (fingerprint(&bytes), Found::Lost),
        })
    }

    /// Locks the cell, unless somebody else has. Its lock file is created if need be.
    pub(super) fn try_lock(&self) -> io::Result<Option<LockedCell>> {
        self.patiently(|| {
            // Without opening it for writing: whoever watches hears of the end of that.
            if self.is_locked()? {
                return Ok(Some(None));
            }
            // If it fails now, somebody is about to write, or only looks (see `is_locked`), which
            // is nobody's presence.
            let locked = self.lock_with(File::try_lock)?;
            Ok(locked.map(Some))
        })
    }

    /// Locks the cell, and waits for others who have it for a moment.
    pub(super) fn lock_patiently(&self) -> io::Result<LockedCell> {
        self.patiently(|| self.lock_with(File::try_lock))
    }

    /// Locks the cell together with others who only read it.
    pub(super) fn lock_shared_patiently(&self) -> io::Result<LockedCell> {
        self.patiently(|| self.lock_with(File::try_lock_shared))
    }

    /// Whether somebody has it locked. To see that, it is shared for a moment.
    pub(super) fn is_locked(&self) -> io::Result<bool> {
        match if_there(File::open(&self.lock))? {
            Some(file) => Ok(!succeeds(file.try_lock_shared())?),
            None => Ok(false),
        }
    }

    fn lock_with(
        &self,
        lock: impl Fn(&File) -> Result<(), TryLockError>,
    ) -> io::Result<Option<LockedCell>> {
        let mut options = OpenOptions::new();
        let file = options.read(true).append(true).create(true).mode(FILE_MODE).open(&self.lock)?;
        if !succeeds(lock(&file))? {
            return Ok(None);
        }
        let locked = LockedCell { cell: self.clone(), lock: file };
        // Somebody may have replaced the file between opening and locking it.
        Ok(locked.is_in_place()?.then_some(locked))
    }

    #[expect(clippy::disallowed_methods, reason = "on a thread that may block, for a moment")]
    fn patiently<T>(&self, attempt: impl Fn() -> io::Result<Option<T>>) -> io::Result<T> {
        let deadline = boot_time() + PATIENCE;
        loop {
            if let Some(done) = attempt()? {
                return Ok(done);
            }
            if boot_time() > deadline {
                let why = format!("{} is locked: is a process stopped?", self.lock.display());
                return Err(io::Error::new(io::ErrorKind::TimedOut, why));
            }
            std::thread::sleep(LOOK_AGAIN);
        }
    }
}

impl LockedCell {
    /// See [`Cell::find`].
    pub(super) fn find(&self) -> io::Result<(Version, Found)> {
        self.cell.find()
    }

    /// Whether the file that is locked is the one that others would lock.
    pub(super) fn is_in_place(&self) -> io::Result<bool> {
        let ours = self.lock.metadata()?;
        let theirs = if_there(fs::metadata(&self.cell.lock))?;
        Ok(theirs.is_some_and(|theirs| is_same(&ours, &theirs)))
    }

    /// Replaces the value; it is on disk when this returns, and a missing one is a lost one from
    /// now on.
    pub(super) fn write<T: Serialize>(&self, old: Version, value: &T) -> Result<Version, Failure> {
        let version = self.write_lazily(old, value)?;
        let sealed = File::open(&self.cell.directory).and_then(|directory| {
            directory.sync_all()?;
            self.mark_used()
        });
        match sealed {
            Ok(()) => Ok(version),
            // Everybody can see it already.
            Err(error) => Err(Failure::Silent(Reason::of(error))),
        }
    }

    /// Removes all files of the cell. Wherever this is cut short, the record is whole, or the cell
    /// looks as if it was never used. Whoever waits for the lock notices that its file is out of
    /// place.
    pub(super) fn erase(&self) -> Result<(), Failure> {
        self.lock.set_len(0)?;
        for file in [&self.cell.record, &self.cell.draft] {
            if_there(fs::remove_file(file))?;
        }
        let sealed = fs::remove_file(&self.cell.lock)
            .and_then(|()| File::open(&self.cell.directory))
            .and_then(|directory| directory.sync_all());
        sealed.map_err(|error| Failure::Silent(Reason::of(error)))
    }

    /// Replaces the value, and leaves it to the system when everybody will find it there after a
    /// crash of the machine; until then they find the old one.
    pub(super) fn write_lazily<T: Serialize>(
        &self,
        old: Version,
        value: &T,
    ) -> io::Result<Version> {
        // Follows real time, so that a record that was lost does not begin again with old numbers.
        let version = Version(unix_ms().max(old.0.saturating_add(1)));
        let bytes = (json(&Versioned { version, value }) + "\n").into_bytes();
        if bytes.len() as u64 > RECORD_BYTES_MAX {
            let why = format!("a record of {} bytes is too long", bytes.len());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        self.draft(&bytes)
            .and_then(|()| fs::rename(&self.cell.draft, &self.cell.record))
            .inspect_err(
                // On a full disk even this little is missed. It is overwritten the next time anyway.
                |_| drop(fs::remove_file(&self.cell.draft)),
            )?;
        Ok(version)
    }

    fn draft(&self, bytes: &[u8]) -> io::Result<()> {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(FILE_MODE);
        let mut file = options.open(&self.cell.draft)?;
        file.write_all(bytes)?;
        // Always: some file systems put a file in place whose content never came.
        file.sync_all()
    }

    fn mark_used(&self) -> io::Result<()> {
        if self.lock.metadata()?.len() == 0 {
            (&self.lock).write_all(b"used\n")?;
        }
        Ok(())
    }
}

fn succeeds(locking: Result<(), TryLockError>) -> io::Result<bool> {
    match locking {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// What was found; `None` if it is not there.
pub(super) fn if_there<T>(found: io::Result<T>) -> io::Result<Option<T>> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether both are of one file or directory.
pub(super) fn is_same(one: &Metadata, other: &Metadata) -> bool {
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

/// A version for bytes that have none (FNV-1a).
fn fingerprint(bytes: &[u8]) -> Version {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    Version(bytes.iter().fold(0xcbf2_9ce4_8422_2325, step).max(1))
}
