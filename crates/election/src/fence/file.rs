//! A file that is replaced only under the highest token that it has seen.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use frazil_coord::Token;
use frazil_coord::internal::write_causes;

use super::WriteOutcome;

/// A file with the highest token that wrote it in a file beside it (`NAME.fence`), both behind one
/// lock (`NAME.lock`) for the processes of one machine.
///
/// A write is on disk when it returns, and a reader sees the old content or the new one, never
/// half of it. The calls block; in async code use a thread for them. Whoever is stopped (SIGSTOP)
/// within a call keeps the others waiting until it goes on or is killed.
///
/// ```
/// use frazil_coord::Token;
/// use frazil_election::fence::{FencedFile, WriteOutcome};
///
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("report");
/// let report = FencedFile::new(&path);
/// assert_eq!(report.write(Token(8), b"by the new leader")?, WriteOutcome::Accepted);
/// let late = report.write(Token(7), b"by the old one")?;
/// assert_eq!(late, WriteOutcome::Refused { highest: Token(8) });
/// assert_eq!(std::fs::read(&path)?, b"by the new leader");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FencedFile {
    path: PathBuf,
    fence: PathBuf,
    lock: PathBuf,
}

/// Why it is not known what became of a write.
#[derive(Debug)]
#[non_exhaustive]
pub enum FenceError {
    /// The disk, a permission, or the path.
    Io {
        /// At which file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The fence cannot be read, or was removed; nobody can tell what it had seen.
    Lost {
        /// Where it was.
        path: PathBuf,
    },
}

/// What the lock file holds once there is a fence: a missing one is a lost one from then on.
const USED: &[u8] = b"used\n";

impl FencedFile {
    /// The file of a path; nothing is created before it is written.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        let (fence, lock) = (beside(&path, ".fence"), beside(&path, ".lock"));
        Self { path, fence, lock }
    }

    /// Replaces the content.
    ///
    /// # Errors
    /// If the disk or a permission is in the way, or the fence is lost. After an error of the disk
    /// the content may be the old one or the new one.
    pub fn write(&self, token: Token, content: &[u8]) -> Result<WriteOutcome, FenceError> {
        let locked = self.lock()?;
        let outcome = self.raise_locked(&locked, token)?;
        if outcome.is_accepted() {
            replace(&self.path, content)?;
        }
        Ok(outcome)
    }

    /// Raises the fence and leaves the content: what a new leader does before it reads.
    ///
    /// # Errors
    /// As for [`write`](Self::write).
    pub fn raise(&self, token: Token) -> Result<WriteOutcome, FenceError> {
        let locked = self.lock()?;
        self.raise_locked(&locked, token)
    }

    /// The highest token that was seen; zero if nobody has written yet.
    ///
    /// # Errors
    /// As for [`write`](Self::write).
    pub fn highest(&self) -> Result<Token, FenceError> {
        let locked = self.lock()?;
        self.read_fence(&locked)
    }

    /// The fence is on disk before the content is: whoever finds the new content finds the new
    /// fence too.
    fn raise_locked(&self, locked: &File, token: Token) -> Result<WriteOutcome, FenceError> {
        let highest = self.read_fence(locked)?;
        let outcome = WriteOutcome::of(token, highest);
        if token > highest {
            replace(&self.fence, format!("{token}\n").as_bytes())?;
            self.mark_used(locked)?;
        }
        Ok(outcome)
    }

    fn read_fence(&self, locked: &File) -> Result<Token, FenceError> {
        let lost = || FenceError::Lost { path: self.fence.clone() };
        match fs::read_to_string(&self.fence) {
            Ok(text) => text.trim_end().parse().map(Token).map_err(|_| lost()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let used = locked.metadata().map_err(at(&self.lock))?.len() > 0;
                if used { Err(lost()) } else { Ok(Token(0)) }
            }
            Err(error) if error.kind() == io::ErrorKind::InvalidData => Err(lost()),
            Err(error) => Err(at(&self.fence)(error)),
        }
    }

    /// Waits for others who write, which takes as long as the disk does. The lock file is never
    /// removed: whoever waits for it would then hold the lock of a file that nobody else sees.
    fn lock(&self) -> Result<File, FenceError> {
        let mut options = OpenOptions::new();
        let file = options.read(true).append(true).create(true).open(&self.lock);
        let file = file.map_err(at(&self.lock))?;
        file.lock().map_err(at(&self.lock))?;
        Ok(file)
    }

    fn mark_used(&self, mut locked: &File) -> Result<(), FenceError> {
        if locked.metadata().map_err(at(&self.lock))?.len() == 0 {
            locked.write_all(USED).and_then(|()| locked.sync_all()).map_err(at(&self.lock))?;
        }
        Ok(())
    }
}

/// Puts a file in the place of another; it is on disk when this returns.
fn replace(path: &Path, content: &[u8]) -> Result<(), FenceError> {
    let draft = beside(path, ".draft");
    let written = File::create(&draft).and_then(|mut file| {
        file.write_all(content)?;
        file.sync_all()
    });
    written.map_err(at(&draft))?;
    fs::rename(&draft, path).map_err(at(path))?;
    let directory = match path.parent() {
        Some(directory) if !directory.as_os_str().is_empty() => directory,
        _ => Path::new("."),
    };
    File::open(directory).and_then(|directory| directory.sync_all()).map_err(at(directory))
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

fn at(path: &Path) -> impl Fn(io::Error) -> FenceError {
    move |error| FenceError::Io { path: path.to_owned(), error }
}

impl fmt::Display for FenceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { path, .. } => write!(f, "cannot use {}", path.display()),
            Self::Lost { path } => write!(
                f,
                "{} is gone or unreadable, and with it the highest token seen: write the token of \
                 the present leader into it",
                path.display()
            ),
        }?;
        if f.alternate() { write_causes(f, self) } else { Ok(()) }
    }
}

impl std::error::Error for FenceError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { error, .. } => Some(error),
            Self::Lost { .. } => None,
        }
    }
}
