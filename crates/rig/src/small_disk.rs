//! A disk that is soon full.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::program;

/// What is written at a time when the disk is filled; the last bytes go one by one.
const FILL_STEP: usize = 4096;

/// Mounts a tmpfs of about `bytes` (rounded up to whole pages), which needs root.
///
/// # Errors
///
/// If it can not be mounted; the message has the reason that `mount` gave.
pub fn full_disk(bytes: u64) -> io::Result<SmallDisk> {
    let directory = TempDir::with_prefix("frazil-disk-")?;
    let mut mount = Command::new(program::find("mount")?);
    mount.args(["-t", "tmpfs", "-o"]).arg(format!("size={bytes}"));
    program::run(mount.arg("frazil-rig").arg(directory.path())).map_err(|error| {
        io::Error::new(error.kind(), format!("a small disk needs root to mount it: {error}"))
    })?;
    Ok(SmallDisk { directory })
}

/// A mounted tmpfs; unmounted on drop.
#[derive(Debug)]
pub struct SmallDisk {
    directory: TempDir,
}

impl SmallDisk {
    /// The directory on which it is mounted.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Takes all the space that is left, with a file of its own.
    ///
    /// # Errors
    ///
    /// If writing fails for another reason than a full disk.
    pub fn fill(&self) -> io::Result<()> {
        let mut file = File::options().create(true).append(true).open(self.ballast())?;
        for step in [FILL_STEP, 1] {
            loop {
                match file.write(&vec![0; step]) {
                    Ok(_) => {}
                    Err(error) if error.kind() == io::ErrorKind::StorageFull => break,
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }

    /// Gives back the space that [`SmallDisk::fill`] took.
    ///
    /// # Errors
    ///
    /// If the disk was not filled.
    pub fn make_room(&self) -> io::Result<()> {
        fs::remove_file(self.ballast())
    }

    fn ballast(&self) -> PathBuf {
        self.directory.path().join(".ballast")
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lazy: a file still open must not keep the mount from leaving the tree. A failure can
        // only be seen in the mount table.
        let _ = program::run(Command::new("umount").arg("--lazy").arg(self.directory.path()));
    }
}
