//! The source of the keys: a file or the store.

use std::path::{Path, PathBuf};

/// Where the keys are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeySource {
    /// In a file, which is read at the start and on SIGHUP.
    File(PathBuf),
    /// In the namespace's store, which is followed.
    Store,
}

/// How the store is named where a file could be.
const STORE: &str = "store";

impl KeySource {
    /// What somebody typed: the word `store`, or a file. A file of that name is `./store`.
    #[must_use]
    pub fn typed(text: PathBuf) -> Self {
        if text == Path::new(STORE) { Self::Store } else { Self::File(text) }
    }

    /// The file, if they are in one.
    #[must_use]
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::File(path) => Some(path),
            Self::Store => None,
        }
    }
}

impl From<PathBuf> for KeySource {
    fn from(path: PathBuf) -> Self {
        Self::File(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_store_names_the_store_and_all_else_a_file() {
        assert_eq!(KeySource::typed("store".into()), KeySource::Store);
        for file in ["./store", "store.toml", "Store", "/store", "keys.toml"] {
            assert_eq!(KeySource::typed(file.into()).file(), Some(Path::new(file)));
        }
    }
}
