//! The namespace's directory: that it is ours, on a file system that keeps its word, and no copy.

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};

use super::cell::{FILE_MODE, if_there, is_same};
use crate::error::{ErrorKind, Reason};
use crate::finding::Finding;
use crate::nonce::Nonce;
use crate::slot::Group;

/// Only the owner looks inside.
const DIRECTORY_MODE: u32 = 0o700;
/// The file that says which directory this is.
const IDENTITY: &str = "identity";

/// What to do with a directory that was copied from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Copied {
    /// Refuse it: both might be used at once.
    Refuse,
    /// Open it as it is, to raise its quarantine before it is adopted.
    Accept,
    /// Make it one of its own. Whoever does this knows that the original is gone, and has raised
    /// the quarantine.
    Adopt,
}

/// How a directory is entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OpenMode {
    /// To be used; what is missing is created.
    Use(Copied),
    /// To be looked into; nothing is created, and a copy is refused.
    Look,
}

/// What the URL allows that is refused otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Allowed {
    pub(super) any_filesystem: bool,
    pub(super) any_owner: bool,
}

/// Which directory this is. A copy or a restored backup has another inode.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Identity {
    inode: u64,
    /// When the directory was made, in nanoseconds, where the file system tells.
    born: Option<u128>,
}

/// Checks what is there, creates what is missing if it is to be used, and gives what weakens the
/// promises.
pub(super) fn prepare(
    root: &Path,
    allowed: Allowed,
    open_mode: OpenMode,
) -> Result<Vec<Finding>, (ErrorKind, Reason)> {
    let broken = |error: io::Error| {
        let kind = match error.kind() {
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                ErrorKind::Denied
            }
            io::ErrorKind::NotADirectory | io::ErrorKind::AlreadyExists => ErrorKind::InvalidConfig,
            _ => ErrorKind::Unavailable,
        };
        let hint = if kind == ErrorKind::InvalidConfig { " (name a directory)" } else { "" };
        (kind, Reason::new(format!("{}{hint}", root.display()), error))
    };
    let create = |path: &Path| {
        DirBuilder::new().recursive(true).mode(DIRECTORY_MODE).create(path).map_err(broken)
    };
    // Before anything is created, so that a refusal leaves nothing behind.
    // A relative path ends in the current directory.
    let there = root.ancestors().find(|path| path.exists()).unwrap_or(Path::new("."));
    let mut weaknesses = check_filesystem(there, allowed.any_filesystem)?;
    if open_mode != OpenMode::Look {
        weaknesses.extend(check_owner(root, allowed.any_owner)?);
    }
    match open_mode {
        OpenMode::Look if !root.exists() => return Ok(weaknesses),
        OpenMode::Look => {}
        OpenMode::Use(_) => {
            create(root)?;
            for group in Group::ALL.iter().copied() {
                create(&root.join(group.letter()))?;
            }
        }
    }
    if !is_accepted(root, open_mode).map_err(broken)? {
        let why = format!(
            "{} was copied or restored from a backup; the same IDs could be issued here and there. \
             If the original is not used any more: frazil store quarantine --adopt",
            root.display()
        );
        return Err((ErrorKind::Unsafe, why.into()));
    }
    let mode = fs::metadata(root).map_err(broken)?.mode() & 0o077;
    if mode != 0 {
        weaknesses.push(Finding::warning(
            format!("others can look into {}", root.display()),
            format!("chmod 700 {}", root.display()),
        ));
    }
    Ok(weaknesses)
}

/// The directory that was opened, to notice when another one takes its place. It is kept open, so
/// that no other directory gets its inode.
#[derive(Debug)]
pub(super) struct Opened(File);

/// What is at the path of a directory that was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// That directory.
    Same,
    /// Nothing, or a directory that no store ever used: it may come back, as after an unmount.
    Away,
    /// The directory was removed, or another store is there.
    Replaced,
}

impl Opened {
    pub(super) fn at(root: &Path) -> io::Result<Self> {
        File::open(root).map(Self)
    }

    pub(super) fn place(&self, root: &Path) -> io::Result<Place> {
        let ours = self.0.metadata()?;
        if ours.nlink() == 0 {
            return Ok(Place::Replaced);
        }
        Ok(match if_there(fs::metadata(root))? {
            Some(theirs) if is_same(&ours, &theirs) => Place::Same,
            Some(_) if root.join(IDENTITY).exists() => Place::Replaced,
            Some(_) | None => Place::Away,
        })
    }
}

/// Fails if the directory was emptied: it may be about to be filled again.
pub(super) fn require_identity(root: &Path) -> io::Result<()> {
    fs::metadata(root.join(IDENTITY)).map(drop)
}

/// The names of the slots that have a record or a lock file.
pub(super) fn slot_names(directory: &Path) -> io::Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    for entry in fs::read_dir(directory)? {
        let file = entry?.file_name();
        let name = file.to_str().and_then(|file| match file.strip_prefix('.') {
            Some(hidden) => hidden.strip_suffix(".lock"),
            None => Some(file),
        });
        names.extend(name.map(str::to_owned));
    }
    Ok(names)
}

/// What is known of a file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FileSystemKind {
    Well,
    UntilReboot,
    InContainer,
    Unknown,
}

fn check_filesystem(root: &Path, any: bool) -> Result<Vec<Finding>, (ErrorKind, Reason)> {
    let unreadable = |error| {
        (ErrorKind::Unavailable, Reason::new(root.display().to_string(), io::Error::from(error)))
    };
    let stat = rustix::fs::statfs(root).map_err(unreadable)?;
    let magic = u64::try_from(stat.f_type).unwrap_or(0) & 0xFFFF_FFFF;
    Ok(match kept(magic) {
        FileSystemKind::Well => Vec::new(),
        FileSystemKind::UntilReboot => vec![Finding::warning(
            "in memory (tmpfs): all is forgotten when the machine restarts",
            "use a directory on a disk",
        )],
        FileSystemKind::InContainer => vec![Finding::warning(
            "in a container's own layer (overlayfs): all is forgotten with the container",
            "mount a volume",
        )],
        FileSystemKind::Unknown if any => vec![Finding::warning(
            "an unknown file system was allowed by the URL",
            "use a local disk, and leave out unsafe_filesystem",
        )],
        FileSystemKind::Unknown => {
            let why = format!(
                "{} is on a file system ({magic:#x}) not known to keep locks and renames on one \
                 machine (network file systems do not): use a local disk, or add \
                 ?unsafe_filesystem=allow",
                root.display()
            );
            return Err((ErrorKind::Unsafe, why.into()));
        }
    })
}

/// Whoever owns the directory, or the one that it is in, can put another one in its place: the same
/// IDs would be issued again. What is written here by others than its owner, as root, its owner
/// cannot use. Whoever only looks does no harm.
fn check_owner(root: &Path, any: bool) -> Result<Option<Finding>, (ErrorKind, Reason)> {
    let us = rustix::process::geteuid().as_raw();
    let owner = |path: &Path| fs::metadata(path).ok().map(|found| found.uid());
    // Root can replace any directory, whoever owns it.
    let is_foreign = |path: &&Path| owner(path).is_some_and(|uid| uid != us && uid != 0);
    let Some(path) = [Some(root), root.parent()].into_iter().flatten().find(is_foreign) else {
        return Ok(None);
    };
    let (uid, shown) = (owner(path).unwrap_or_default(), path.display());
    let what = format!("{shown} belongs to another user (uid {uid}; this process has {us})");
    let fix = format!("run as its owner, or chown -R {us} {shown}");
    if any {
        return Ok(Some(Finding::warning(format!("{what}, which the URL allows"), fix)));
    }
    let why = format!(
        "{what}, who could put another directory in its place: {fix}; if that user is trusted, add \
         ?unsafe_owner=allow to the store's URL"
    );
    Err((ErrorKind::Unsafe, why.into()))
}

/// What is known of the file system with this mark.
fn kept(magic: u64) -> FileSystemKind {
    match magic {
        // ext2 to ext4, XFS, Btrfs, ZFS, F2FS, bcachefs.
        0xEF53 | 0x5846_5342 | 0x9123_683E | 0x2FC1_2FC1 | 0xF2F5_2010 | 0xCA45_1A4E => {
            FileSystemKind::Well
        }
        // tmpfs, ramfs.
        0x0102_1994 | 0x8584_58F6 => FileSystemKind::UntilReboot,
        // overlayfs.
        0x794C_7630 => FileSystemKind::InContainer,
        _ => FileSystemKind::Unknown,
    }
}

/// Whether the directory is the one that it says, or a copy that may be entered.
fn is_accepted(root: &Path, open_mode: OpenMode) -> io::Result<bool> {
    let path = root.join(IDENTITY);
    let data = fs::metadata(root)?;
    let born = data.created().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    let here = Identity { inode: data.ino(), born: born.map(|born| born.as_nanos()) };
    let written = match if_there(fs::read(&path))? {
        Some(bytes) => serde_json::from_slice::<Identity>(&bytes).ok(),
        // It is written before anything else, so it was left out when the rest was copied.
        None if root.join("meta").exists() => None,
        None if open_mode == OpenMode::Look => return Ok(true),
        None => return write_identity(&path, &here).map(|()| true),
    };
    match open_mode {
        _ if written.as_ref() == Some(&here) => Ok(true),
        OpenMode::Look | OpenMode::Use(Copied::Refuse) => Ok(false),
        OpenMode::Use(Copied::Accept) => Ok(true),
        OpenMode::Use(Copied::Adopt) => write_identity(&path, &here).map(|()| true),
    }
}

/// Writes the identity beside its place and moves it there: another process, or this one, may do
/// so at once, and process ids repeat in containers.
fn write_identity(path: &Path, identity: &Identity) -> io::Result<()> {
    let draft = path.with_added_extension(Nonce::mint()?.to_string());
    let mut options = OpenOptions::new();
    let mut file = options.write(true).create_new(true).mode(FILE_MODE).open(&draft)?;
    let mut bytes = serde_json::to_vec(identity)?;
    bytes.push(b'\n');
    file.write_all(&bytes)
        .and_then(|()| file.sync_all())
        .and_then(|()| fs::rename(&draft, path))
        .inspect_err(|_| drop(fs::remove_file(&draft)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_systems_of_the_network_and_unknown_ones_are_not_trusted() {
        // NFS, SMB, CIFS, FUSE, 9p, Ceph, Lustre, and none at all.
        for magic in
            [0x6969, 0x517B, 0xFF53_4D42, 0x6573_5546, 0x0102_1997, 0x00C3_6400, 0x0BD0_0BD0, 0]
        {
            assert_eq!(kept(magic), FileSystemKind::Unknown, "{magic:#x}");
        }
        assert_eq!(kept(0xEF53), FileSystemKind::Well);
    }
}
