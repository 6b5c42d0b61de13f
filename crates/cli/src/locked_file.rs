//! A file that one command changes at a time, replaced as a whole: a full disk or a crash leaves the old one.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use crate::output::{Exit, Failure};

/// For its owner alone.
const MODE: u32 = 0o600;
/// How often a file that was replaced while it was waited for is opened again: each time another
/// command has come first.
const ROUNDS_MAX: usize = 1000;

/// The file, while nobody else changes it: two commands at a time would lose what one of them did.
pub(crate) struct LockedFile {
    path: PathBuf,
    /// Locked until this is dropped.
    file: File,
}

impl LockedFile {
    /// An existing one.
    pub(crate) fn open(path: &Path) -> Result<Self, Failure> {
        Self::enter(path, OpenOptions::new().read(true).write(true))
    }

    /// The same, or an empty one if there is none.
    pub(crate) fn open_or_new(path: &Path) -> Result<Self, Failure> {
        let mut options = OpenOptions::new();
        Self::enter(path, options.read(true).write(true).create(true).truncate(false).mode(MODE))
    }

    fn enter(path: &Path, options: &OpenOptions) -> Result<Self, Failure> {
        let unusable = |error: io::Error| {
            Failure::usage(format_args!("{} cannot be read: {error}", path.display()))
        };
        for _ in 0..ROUNDS_MAX {
            let file = options.open(path).map_err(unusable)?;
            file.lock().map_err(unusable)?;
            // Whoever had the lock may have put another file in its place.
            if is_in_place(&file, path).map_err(unusable)? {
                let path = fs::canonicalize(path).map_err(unusable)?;
                return Ok(Self { path, file });
            }
        }
        let why = "others change it at the same time again and again";
        Err(Failure::new(Exit::Unavailable, format_args!("{}: {why}", path.display())))
    }

    pub(crate) fn read(&self) -> Result<String, Failure> {
        let shown = self.path.display();
        let mut text = String::new();
        (&self.file)
            .read_to_string(&mut text)
            .map_err(|error| Failure::usage(format_args!("{shown} cannot be read: {error}")))?;
        Ok(text)
    }

    /// Where it is, links followed.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes the text beside the file and moves it there. Its owner, its mode and links to it stay.
    pub(crate) fn replace(&self, text: &str) -> Result<(), Failure> {
        self.put(text).map_err(|error| {
            let path = self.path.display();
            let why = format_args!("{path} cannot be written, and is what it was: {error}");
            Failure::new(Exit::Unavailable, why)
        })
    }

    fn put(&self, text: &str) -> io::Result<()> {
        let directory = self.path.parent().unwrap_or(Path::new("/"));
        let old = self.file.metadata()?;
        let mut draft = tempfile::Builder::new().prefix(".frazil-").tempfile_in(directory)?;
        draft.write_all(text.as_bytes())?;
        let new = draft.as_file().metadata()?;
        if (new.uid(), new.gid()) != (old.uid(), old.gid()) {
            fchown(draft.as_file(), Some(old.uid()), Some(old.gid())).map_err(|error| {
                let why = format!("its owner cannot be kept ({error}): run this as its owner");
                io::Error::new(error.kind(), why)
            })?;
        }
        draft.as_file().set_permissions(Permissions::from_mode(old.mode() & 0o7777))?;
        draft.as_file().sync_all()?;
        draft.persist(&self.path).map_err(|error| error.error)?;
        File::open(directory)?.sync_all()
    }
}

fn is_in_place(file: &File, path: &Path) -> io::Result<bool> {
    let (ours, theirs) = (file.metadata()?, fs::metadata(path)?);
    Ok((ours.dev(), ours.ino()) == (theirs.dev(), theirs.ino()))
}
