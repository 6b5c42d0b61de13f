//! The files that are read.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fmt::{self, Write};
use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;

/// A file, or stdin.
#[derive(Clone, Debug)]
pub struct Input {
    /// As it was given.
    path: OsString,
    /// The same as text.
    name: String,
    /// What it is, if it is a file and no pipe.
    file: Option<Regular>,
}

/// A file on a disk.
#[derive(Clone, Copy, Debug)]
struct Regular {
    bytes: u64,
    /// What tells it from all others, whatever it is called: device and inode.
    identity: (u64, u64),
}

/// Why some files cannot be audited together.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum InputError {
    /// Stdin was named more than once, and can be read once.
    StdinTwice,
    /// Two names are of one file: every ID of it would be a duplicate.
    SameFile(Box<(Input, Input)>),
}

impl fmt::Display for InputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |input: &Input| input.shown(|text| text.escape_debug().to_string());
        match self {
            Self::StdinTwice => f.write_str("stdin can be read once: give `-` once"),
            Self::SameFile(both) => write!(
                f,
                "{} and {} are the same file, so every ID of it would count as a duplicate: give \
                 it once",
                shown(&both.0),
                shown(&both.1)
            ),
        }
    }
}

impl std::error::Error for InputError {}

impl Input {
    /// The files of some paths, each of which may be named once; `-` is stdin. Whether one is there
    /// shows when it is opened.
    ///
    /// # Errors
    /// One of them would be read twice.
    pub fn all(paths: &[OsString]) -> Result<Vec<Self>, InputError> {
        if paths.iter().filter(|path| is_stdin(path)).count() > 1 {
            return Err(InputError::StdinTwice);
        }
        let inputs: Vec<Self> = paths.iter().map(|path| Self::new(path)).collect();
        match twins(&inputs) {
            None => Ok(inputs),
            Some((one, other)) => Err(InputError::SameFile(Box::new((one.clone(), other.clone())))),
        }
    }

    fn new(path: &OsStr) -> Self {
        let known = if is_stdin(path) { stdin_metadata() } else { fs::metadata(path) };
        let file = known
            .ok()
            .filter(Metadata::is_file)
            .map(|file| Regular { bytes: file.len(), identity: (file.dev(), file.ino()) });
        Self { path: path.to_owned(), name: text(path, str::to_owned), file }
    }

    /// Opens it to be read from its beginning; stdin, from where it is.
    ///
    /// # Errors
    /// It is not there, or not for this user.
    pub fn open(&self) -> io::Result<Box<dyn Read>> {
        match self.is_stdin() {
            true => Ok(Box::new(io::stdin().lock())),
            false => Ok(Box::new(File::open(&self.path)?)),
        }
    }

    /// Its path as text; bytes that are no text stand there as `\x` and two digits.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its path for people, of which `write` writes what is text; `stdin` for that.
    #[must_use]
    pub fn shown(&self, write: impl Fn(&str) -> String) -> String {
        match self.is_stdin() {
            true => "stdin".to_owned(),
            false => text(&self.path, write),
        }
    }

    /// Its length, if it is a file that can be read twice.
    #[must_use]
    pub fn bytes(&self) -> Option<u64> {
        self.file.filter(|_| !self.is_stdin()).map(|file| file.bytes)
    }

    /// Whether a second pass finds the same: pipes are empty after the first.
    #[must_use]
    pub fn is_rereadable(&self) -> bool {
        self.bytes().is_some()
    }

    fn is_stdin(&self) -> bool {
        is_stdin(&self.path)
    }
}

/// Two that are one file: named twice, or under two names.
fn twins(inputs: &[Input]) -> Option<(&Input, &Input)> {
    let mut known = HashMap::new();
    inputs.iter().find_map(|input| {
        let before = known.insert(input.file?.identity, input)?;
        Some((before, input))
    })
}

/// What stdin is: a shell may have put a file there.
fn stdin_metadata() -> io::Result<Metadata> {
    File::from(io::stdin().as_fd().try_clone_to_owned()?).metadata()
}

/// A name as text; bytes that are no text stand there as `\x` and two digits.
fn text(path: &OsStr, write: impl Fn(&str) -> String) -> String {
    path.as_bytes().utf8_chunks().fold(String::new(), |mut text, chunk| {
        text.push_str(&write(chunk.valid()));
        for byte in chunk.invalid() {
            // A string takes whatever is written.
            let _ = write!(text, "\\x{byte:02x}");
        }
        text
    })
}

fn is_stdin(path: &OsStr) -> bool {
    path == "-"
}
