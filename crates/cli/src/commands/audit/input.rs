//! The files that are read.

use std::fs::{self, File};
use std::io::{self, Read};

use crate::output::Failure;
use crate::words;

/// A file, or stdin.
#[derive(Debug)]
pub(super) struct Input {
    /// As it was typed.
    name: String,
    /// Its length, if it is a file that can be read twice.
    bytes: Option<u64>,
}

impl Input {
    /// All that was typed.
    pub(super) fn all(names: &[String]) -> Result<Vec<Self>, Failure> {
        if let Some(url) = names.iter().find(|name| is_url(name)) {
            return Err(Failure::usage(format_args!(
                "`frazil audit` reads files, not {}: save the Ids that a server issues first, as \
                 `frazil next --server URL -n 1000 > ids`",
                words::printable(url.split('@').next_back().unwrap_or(url))
            )));
        }
        if names.iter().filter(|name| *name == "-").count() > 1 {
            return Err(Failure::usage("stdin can be read once: give `-` once"));
        }
        Ok(names.iter().map(|name| Self::new(name)).collect())
    }

    fn new(name: &str) -> Self {
        let regular = || fs::metadata(name).ok().filter(fs::Metadata::is_file);
        let bytes = if name == "-" { None } else { regular().map(|file| file.len()) };
        Self { name: name.to_owned(), bytes }
    }

    pub(super) fn open(&self) -> io::Result<Box<dyn Read>> {
        match self.name.as_str() {
            "-" => Ok(Box::new(io::stdin().lock())),
            name => Ok(Box::new(File::open(name)?)),
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The name for a terminal.
    pub(super) fn shown(&self) -> String {
        match self.name.as_str() {
            "-" => "stdin".to_owned(),
            name => words::printable(name),
        }
    }

    pub(super) const fn bytes(&self) -> Option<u64> {
        self.bytes
    }

    /// Whether a second pass finds the same: pipes are empty after the first.
    pub(super) const fn is_rereadable(&self) -> bool {
        self.bytes.is_some()
    }
}

fn is_url(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.starts_with("http://") || name.starts_with("https://")
}
