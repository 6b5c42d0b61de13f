//! The temporary store of `frazil serve --dev`.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use tempfile::TempDir;

const PREFIX: &str = "frazil-dev-";
/// A directory that is younger may belong to a server that has not locked it yet.
const YOUNG: Duration = Duration::from_mins(1);

/// A directory that is removed at the end. A server that was killed leaves its own behind, for the next one to
/// remove.
#[derive(Debug)]
pub(super) struct Scratch {
    directory: TempDir,
    /// Locked as long as the server lives.
    _lock: File,
}

impl Scratch {
    pub(super) fn new() -> io::Result<Self> {
        remove_left_behind(&std::env::temp_dir());
        let directory = tempfile::Builder::new().prefix(PREFIX).tempdir()?;
        let lock = File::open(directory.path())?;
        lock.lock()?;
        Ok(Self { directory, _lock: lock })
    }

    pub(super) fn path(&self) -> &Path {
        self.directory.path()
    }
}

/// Removes the directories of servers that are gone. What cannot be removed is left alone: nobody needs that now.
fn remove_left_behind(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        if entry.file_name().to_string_lossy().starts_with(PREFIX) && is_left_behind(&entry.path())
        {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Whether a directory of this user is old, and nobody holds its lock.
fn is_left_behind(path: &Path) -> bool {
    let Ok(metadata) = fs::symlink_metadata(path) else { return false };
    let is_old = metadata.modified().is_ok_and(|at| at.elapsed().is_ok_and(|age| age > YOUNG));
    let is_own = metadata.uid() == rustix::process::geteuid().as_raw();
    let is_unlocked = || File::open(path).is_ok_and(|file| file.try_lock().is_ok());
    metadata.is_dir() && is_own && is_old && is_unlocked()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_server_left_is_removed_and_what_is_in_use_is_not() {
        let parent = tempfile::tempdir().unwrap();
        let make = |name: &str, age: Duration| {
            let path = parent.path().join(name);
            fs::create_dir(&path).unwrap();
            fs::write(path.join("record"), "x").unwrap();
            let file = File::open(&path).unwrap();
            let made = file.metadata().unwrap().modified().unwrap();
            file.set_modified(made - age).unwrap();
            path
        };
        let gone = make("frazil-dev-gone", 2 * YOUNG);
        let held = make("frazil-dev-held", 2 * YOUNG);
        let young = make("frazil-dev-young", Duration::ZERO);
        let other = make("other", 2 * YOUNG);
        let lock = File::open(&held).unwrap();
        lock.lock().unwrap();
        remove_left_behind(parent.path());
        assert!(!gone.exists() && held.exists() && young.exists() && other.exists());
    }
}
