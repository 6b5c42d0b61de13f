//! The list of keys in the namespace's store: one record whose text is that of a file of keys.
//!
//! One record, so that one compare-and-swap on its version changes the list: of two operators who
//! change it at the same time, neither loses what the other did.

use std::collections::BTreeMap;
use std::fmt;
use std::io;

use frazil::coord::internal::time::unix_ms;
use frazil::coord::internal::{Leasing, NewNamespace};
use frazil::coord::{Error, ErrorKind, FirstUse, Found, Nonce, Put, Record, Scheme};
use frazil::coord::{Slot, Store, Token, Version};

use super::entry::KeyEntry;
use super::file::{KeysError, parse};

/// Bytes of the list: some two thousand keys. Stores take about a megabyte for one record, and the text
/// grows by a tenth where it is written as JSON.
pub const STORED_BYTES_MAX: usize = 512 * 1024;
/// What the text is called in the record.
const TEXT: &str = "keys";

/// The list as the store has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoredKeys {
    /// Its text, as in a file of keys; `None` if there is none.
    pub text: Option<String>,
    /// Whether there was one once, and its record is gone or cannot be read.
    pub is_lost: bool,
    /// The version to name when it is replaced.
    pub version: Version,
}

/// Why the list cannot be had or written.
#[derive(Debug)]
#[non_exhaustive]
pub enum StoredKeysError {
    /// The store failed.
    Store(Error),
    /// It was there once, and its record is gone or cannot be read.
    Lost,
    /// It makes no sense.
    Keys(KeysError),
    /// It is longer than a store takes.
    TooLong(usize),
    /// The system gave no random bits.
    NoRandomness(io::Error),
}

impl StoredKeys {
    /// Creates the namespace where it does not exist: the keys may be the first that is written into
    /// it. Whoever leases workers later fills in the rest.
    ///
    /// # Errors
    /// If the store fails, or the system gives no random bits.
    pub async fn prepare(store: &dyn Store, scheme: Scheme) -> Result<(), StoredKeysError> {
        let look = store.read(&[]).await.map_err(StoredKeysError::Store)?;
        if look.meta.is_some() {
            return Ok(());
        }
        let new = NewNamespace {
            layout: None,
            window_ms: 0,
            first_use: FirstUse::of(scheme),
            was_there: false,
            owed: 0,
            now: look.clock.unwrap_or_else(unix_ms),
            incarnation: Nonce::mint().map_err(StoredKeysError::NoRandomness)?,
        };
        // If somebody else was faster it is there as well.
        let _: Put = store.put_meta(None, &new.meta()).await.map_err(StoredKeysError::Store)?;
        Ok(())
    }

    /// Reads it.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn load(store: &dyn Store) -> Result<Self, StoredKeysError> {
        let slot = Slot::api_keys();
        let look = store.read(std::slice::from_ref(&slot)).await.map_err(StoredKeysError::Store)?;
        let Some(entry) = look.entry(&slot) else { return Ok(Self::default()) };
        let text = match &entry.found {
            Found::Known(record) => record.info.get(TEXT).cloned(),
            Found::New | Found::Lost => None,
        };
        let is_lost = text.is_none() && entry.found != Found::New;
        Ok(Self { text, is_lost, version: entry.version })
    }

    /// The keys in it.
    ///
    /// # Errors
    /// If it was lost, or everything that is wrong in its text.
    pub fn entries(&self) -> Result<Vec<KeyEntry>, StoredKeysError> {
        if self.is_lost {
            return Err(StoredKeysError::Lost);
        }
        parse(self.text.as_deref().unwrap_or_default()).map_err(StoredKeysError::Keys)
    }

    /// Replaces it, if it still is what was read. `false`: somebody else has changed it meanwhile.
    ///
    /// # Errors
    /// If the text makes no sense or is too long, or if the store fails.
    pub async fn replace(&self, store: &dyn Store, text: &str) -> Result<bool, StoredKeysError> {
        if text.len() > STORED_BYTES_MAX {
            return Err(StoredKeysError::TooLong(text.len()));
        }
        parse(text).map_err(StoredKeysError::Keys)?;
        match store.put(&Slot::api_keys(), self.version, &record(text)).await {
            Ok(Put::Done(_)) => Ok(true),
            Ok(Put::Conflict) => Ok(false),
            // Whether it was carried out shows the next look: only this text may be in its place.
            Err(error) if error.kind() == ErrorKind::Unknown => {
                let now = Self::load(store).await?;
                match now.text.as_deref() == Some(text) {
                    true => Ok(true),
                    false => Err(StoredKeysError::Store(error)),
                }
            }
            Err(error) => Err(StoredKeysError::Store(error)),
        }
    }
}

/// Nobody leases it: no times are promised, and none are used.
fn record(text: &str) -> Record {
    Record {
        nonce: None,
        token: Token(0),
        holder: "frazil key".into(),
        floor: 0,
        horizon: 0,
        renewed: unix_ms(),
        expires: None,
        released: false,
        info: BTreeMap::from([(TEXT.to_owned(), text.to_owned())]),
    }
}

impl fmt::Display for StoredKeysError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Store(error) => error.fmt(f),
            Self::Lost => f.write_str(
                "the store had a list of API keys, and its record is gone or cannot be read: frazil \
                 key new --keys store begins another one",
            ),
            Self::Keys(error) => write!(f, "the list of API keys in the store: line {error}"),
            Self::TooLong(bytes) => write!(
                f,
                "a list of API keys of {bytes} bytes is too long for a store, which takes \
                 {STORED_BYTES_MAX}: revoke those that have ended (frazil key ls), or use a file"
            ),
            Self::NoRandomness(_) => f.write_str("the system gave no random bits"),
        }
    }
}

impl std::error::Error for StoredKeysError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            // Its text is that of the error, so what comes next is what that rests on.
            Self::Store(error) => error.source(),
            Self::NoRandomness(error) => Some(error),
            Self::Lost | Self::Keys(_) | Self::TooLong(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use frazil::coord::MemoryStore;

    use super::*;
    use crate::policy::keys::{NewKey, Role};

    fn text() -> String {
        let key = NewKey::mint().unwrap();
        let entry = KeyEntry::of(&key, "orders", vec![Role::Ids]);
        let (id, hash) = (entry.id, entry.sha256);
        format!("[[key]]\nid = \"{id}\"\nname = \"{id}\"\nroles = [\"ids\"]\nsha256 = \"{hash}\"\n")
    }

    #[tokio::test]
    async fn of_two_who_change_the_list_at_once_one_is_told_to_look_again() {
        let store = MemoryStore::new();
        let seen = StoredKeys::load(&store).await.unwrap();
        assert_eq!(seen, StoredKeys::default());
        let (one, other) = (text(), text());
        assert!(seen.replace(&store, &one).await.unwrap());
        assert!(!seen.replace(&store, &other).await.unwrap(), "the first change is lost");
        let seen = StoredKeys::load(&store).await.unwrap();
        assert_eq!(seen.entries().unwrap().len(), 1);
        assert!(seen.replace(&store, &(one + &other)).await.unwrap());
        assert_eq!(StoredKeys::load(&store).await.unwrap().entries().unwrap().len(), 2);
    }

    #[tokio::test]
    async fn a_list_that_makes_no_sense_or_is_too_long_is_not_written() {
        let store = MemoryStore::new();
        let seen = StoredKeys::load(&store).await.unwrap();
        let long = format!("# {}", "x".repeat(STORED_BYTES_MAX));
        for (bad, expected) in [(long.as_str(), "too long"), ("[[key]]\nid = 7\n", "line 2: ")] {
            let error = seen.replace(&store, bad).await.unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
        assert_eq!(StoredKeys::load(&store).await.unwrap().text, None);
    }
}
