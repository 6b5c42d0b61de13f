//! A problem of the configuration, and where the value comes from.

use std::fmt;
use std::path::PathBuf;

use serde::Serialize;

use crate::words::printable;

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    Default,
    File(Place),
    /// The variable.
    Environment(String),
    /// The flag, with its dashes.
    Flag(String),
}

/// A place in a file; lines and columns count from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) file: PathBuf,
    pub(crate) line: usize,
    pub(crate) column: usize,
}

/// Something that is wrong with the configuration, and what to write instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(super) origin: Origin,
    /// The key as `section.name`, if it is one's.
    pub(super) path: Option<String>,
    pub(super) message: String,
    /// Other keys that have to do with it.
    pub(super) others: Vec<(String, Origin)>,
}

/// A problem for programs.
#[derive(Serialize)]
struct Object {
    key: Option<String>,
    message: String,
    origin: String,
    file: Option<String>,
    line: Option<usize>,
    column: Option<usize>,
    others: Vec<Other>,
}

#[derive(Serialize)]
struct Other {
    key: String,
    origin: String,
}

impl Problem {
    pub(super) fn new(origin: Origin, path: impl Into<String>, message: impl Into<String>) -> Self {
        let path = Some(path.into()).filter(|path| !path.is_empty());
        Self { origin, path, message: message.into(), others: Vec::new() }
    }

    pub(super) fn key(&self) -> Option<String> {
        self.path.clone()
    }

    /// Whether it has to do with one of these keys.
    pub(super) fn concerns(&self, keys: &[String]) -> bool {
        let others = self.others.iter().map(|(key, _)| key);
        self.path.iter().chain(others).any(|key| keys.contains(key))
    }

    /// Problems are reported as they stand in the file, and then those of the environment and of
    /// flags.
    pub(super) const fn rank(&self) -> (usize, usize) {
        match &self.origin {
            Origin::File(place) => (place.line, place.column),
            _ => (usize::MAX, 0),
        }
    }

    /// Whether it says this.
    pub(crate) fn says(&self, text: &str) -> bool {
        self.message.contains(text)
    }

    /// What to change: the line, the variable or the flag.
    pub(crate) fn culprit(&self) -> String {
        match &self.origin {
            Origin::Default => self.path.clone().unwrap_or_default(),
            Origin::File(Place { file, line, .. }) => {
                format!("line {line} of {}", printable(&file.display().to_string()))
            }
            Origin::Environment(name) | Origin::Flag(name) => name.clone(),
        }
    }

    /// For programs.
    pub(crate) fn object(&self) -> impl Serialize + use<> {
        let place = match &self.origin {
            Origin::File(place) => Some(place),
            _ => None,
        };
        let others = self.others.iter();
        Object {
            key: self.path.clone(),
            message: self.message.clone(),
            origin: self.origin.to_string(),
            file: place.map(|place| place.file.display().to_string()),
            line: place.map(|place| place.line),
            column: place.map(|place| place.column),
            others: others
                .map(|(key, origin)| Other { key: key.clone(), origin: origin.to_string() })
                .collect(),
        }
    }
}

/// `file:line:column: key: what is wrong, what to write [other.key: its origin]`
impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.as_deref().map(printable).unwrap_or_default();
        let path = if path.is_empty() { path } else { format!("{path}: ") };
        match &self.origin {
            Origin::Default => write!(f, "{path}")?,
            Origin::File(Place { file, line, column }) => {
                let file = printable(&file.display().to_string());
                write!(f, "{file}:{line}:{column}: {path}")?;
            }
            Origin::Environment(name) => write!(f, "{name} in the environment: {path}")?,
            Origin::Flag(name) => write!(f, "{name}: ")?,
        }
        f.write_str(&printable(&self.message))?;
        for (index, (key, origin)) in self.others.iter().enumerate() {
            write!(f, "{}{key}: {origin}", if index == 0 { " [" } else { ", " })?;
        }
        if self.others.is_empty() { Ok(()) } else { f.write_str("]") }
    }
}

/// Displays as `default`, `file:line`, `environment FRAZIL_X` or `flag --x`.
impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File(Place { file, line, .. }) => {
                write!(f, "{}:{line}", printable(&file.display().to_string()))
            }
            Self::Environment(name) => write!(f, "environment {name}"),
            Self::Flag(name) => write!(f, "flag {name}"),
        }
    }
}
