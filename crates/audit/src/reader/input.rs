//! The files that are read.

use std::ffi::{OsStr, OsString};
use std::fmt::Write;
use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;

use crate::output::Failure;
use crate::words;

/// A file, or stdin.
#[derive(Debug)]
pub(super) struct Input {
    /// As it was typed.
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

impl Input {
    /// All that was typed.
    pub(super) fn all(names: &[OsString]) -> Result<Vec<Self>, Failure> {
        if let Some(url) = names.iter().find_map(|name| name.to_str().filter(|name| is_url(name))) {
            return Err(Failure::usage(format_args!(
                "`frazil audit` reads files, not {}: save the IDs that a server issues first, as \
                 `frazil next --server URL -n 1000 > ids`",
                words::printable(url.split('@').next_back().unwrap_or(url))
            )));
        }
        if names.iter().filter(|name| is_stdin(name)).count() > 1 {
            return Err(Failure::usage("stdin can be read once: give `-` once"));
        }
        let inputs: Vec<Self> = names.iter().map(|name| Self::new(name)).collect();
        match twins(&inputs) {
            None => Ok(inputs),
            Some((one, other)) => Err(Failure::usage(format_args!(
                "{} and {} are the same file, so every ID of it would count as a duplicate: give \
                 it once",
                one.shown(),
                other.shown()
            ))),
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

    pub(super) fn open(&self) -> io::Result<Box<dyn Read>> {
        match self.is_stdin() {
            true => Ok(Box::new(io::stdin().lock())),
            false => Ok(Box::new(File::open(&self.path)?)),
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The name for a terminal.
    pub(super) fn shown(&self) -> String {
        match self.is_stdin() {
            true => "stdin".to_owned(),
            false => text(&self.path, words::printable),
        }
    }

    /// Its length, if it is a file that can be read twice.
    pub(super) fn bytes(&self) -> Option<u64> {
        self.file.filter(|_| !self.is_stdin()).map(|file| file.bytes)
    }

    /// Whether a second pass finds the same: pipes are empty after the first.
    pub(super) fn is_rereadable(&self) -> bool {
        self.bytes().is_some()
    }

    fn is_stdin(&self) -> bool {
        is_stdin(&self.path)
    }
}

/// Two that are one file: named twice, or under two names.
fn twins(inputs: &[Input]) -> Option<(&Input, &Input)> {
    let mut known = std::collections::HashMap::new();
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

fn is_url(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.starts_with("http://") || name.starts_with("https://")
}
