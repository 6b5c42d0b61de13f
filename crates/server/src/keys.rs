//! API keys: who may do what, and how much of it.
//!
//! A key's text is 256 random bits with a public id in front. The server knows its SHA-256 only;
//! bits that nobody can guess need no slower hash.

mod entry;
mod file;
mod quota;
mod text;

use std::collections::HashMap;
use std::sync::Arc;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use frazil::coord::time::unix_ms;

pub use self::entry::{KeyEntry, Role};
pub use self::file::{KeysError, parse, read};
pub(crate) use self::quota::{Left, Quota};
pub use self::text::NewKey;
pub(crate) use self::text::public_id;
use self::text::{HASH_BYTES, hash, id_of};

/// The keys that a server knows.
#[derive(Debug, Default)]
pub(crate) struct Keyring {
    by_id: HashMap<String, Arc<Key>>,
}

/// A key as it is checked.
#[derive(Debug)]
pub(crate) struct Key {
    pub(crate) entry: KeyEntry,
    hash: [u8; HASH_BYTES],
    expires_ms: Option<u64>,
    pub(crate) quota: Option<Arc<Quota>>,
}

/// Why a key opens nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Denied {
    /// No key of that text is known.
    Unknown,
    /// It was one, until then.
    Expired(String),
}

impl Keyring {
    /// The keys of a file. What is left of quotas goes on from before where nothing changed.
    pub(crate) fn new(entries: Vec<KeyEntry>, before: Option<&Self>) -> Self {
        let key = |entry: KeyEntry| {
            let known = before.and_then(|before| before.by_id.get(&entry.id));
            let kept = known.and_then(|key| key.quota.clone());
            let quota = entry.ids_per_second.map(|rate| match kept {
                Some(quota) if quota.per_second() == rate => quota,
                _ => Arc::new(Quota::new(rate)),
            });
            let (hash, expires_ms) = (entry.hash(), entry.expires_ms());
            (entry.id.clone(), Arc::new(Key { entry, hash, expires_ms, quota }))
        };
        Self { by_id: entries.into_iter().map(key).collect() }
    }

    pub(crate) fn len(&self) -> usize {
        self.by_id.len()
    }

    /// The key of a text. The id says which one to look at; the comparison takes as long for a
    /// nearly right text as for any other.
    pub(crate) fn find(&self, text: &str) -> Result<&Arc<Key>, Denied> {
        let key = id_of(text).and_then(|id| self.by_id.get(id)).ok_or(Denied::Unknown)?;
        verify_slices_are_equal(&hash(text), &key.hash).map_err(|_| Denied::Unknown)?;
        key.check_expiry().map(|()| key)
    }

    /// The key as it is now, for somebody who has shown its text before.
    pub(crate) fn renewed(&self, before: &Key) -> Result<&Arc<Key>, Denied> {
        let key = self.by_id.get(&before.entry.id).ok_or(Denied::Unknown)?;
        if key.hash != before.hash {
            return Err(Denied::Unknown);
        }
        key.check_expiry().map(|()| key)
    }
}

impl Key {
    pub(crate) fn check_expiry(&self) -> Result<(), Denied> {
        match self.expires_ms {
            Some(expires_ms) if unix_ms() >= expires_ms => {
                Err(Denied::Expired(self.entry.expires.clone().unwrap_or_default()))
            }
            _ => Ok(()),
        }
    }

    pub(crate) const fn expires(&self) -> bool {
        self.expires_ms.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ring(change: impl FnOnce(&mut KeyEntry)) -> (String, Keyring) {
        let new = NewKey::mint().unwrap();
        let mut entry = KeyEntry::of(&new, "orders", vec![Role::Ids]);
        change(&mut entry);
        (new.text().to_owned(), Keyring::new(vec![entry], None))
    }

    #[test]
    fn only_the_whole_text_of_a_key_finds_it() {
        let (text, ring) = ring(|_| {});
        assert_eq!(ring.find(&text).unwrap().entry.name, "orders");
        let other_end = format!("{}{}", &text[..text.len() - 1], "g");
        let flipped = match text.strip_suffix('0') {
            Some(rest) => format!("{rest}1"),
            None => format!("{}0", &text[..text.len() - 1]),
        };
        for wrong in ["", "frz_", "frz__", &text[..20], &other_end, &flipped, "x\u{e9}"] {
            assert_eq!(ring.find(wrong).unwrap_err(), Denied::Unknown, "{wrong}");
        }
    }

    #[test]
    fn a_key_ends_when_it_expires() {
        let (text, past) = ring(|entry| entry.expires = Some("2020-01-01T00:00:00Z".to_owned()));
        let denied = past.find(&text).unwrap_err();
        assert_eq!(denied, Denied::Expired("2020-01-01T00:00:00Z".to_owned()));
        let (text, future) = ring(|entry| entry.expires = Some("2999-01-01T00:00:00Z".to_owned()));
        assert!(future.find(&text).is_ok());
    }

    #[test]
    fn a_key_that_was_replaced_or_removed_is_not_renewed() {
        let (text, before) = ring(|_| {});
        let key = before.find(&text).unwrap();
        assert!(Keyring::default().renewed(key).is_err());
        let mut entry = key.entry.clone();
        assert!(Keyring::new(vec![entry.clone()], None).renewed(key).is_ok());
        entry.sha256 = "0".repeat(64);
        assert!(Keyring::new(vec![entry], None).renewed(key).is_err());
    }

    #[test]
    fn a_quota_goes_on_over_a_reload_unless_it_changes() {
        let (text, before) = ring(|entry| entry.ids_per_second = 10.try_into().ok());
        let key = before.find(&text).unwrap();
        key.quota.as_ref().unwrap().take(10).unwrap();
        let mut entry = key.entry.clone();
        let same = Keyring::new(vec![entry.clone()], Some(&before));
        let quota = same.find(&text).unwrap().quota.clone().unwrap();
        assert!(quota.take(10).is_err());
        entry.ids_per_second = 20.try_into().ok();
        let more = Keyring::new(vec![entry], Some(&before));
        more.find(&text).unwrap().quota.as_ref().unwrap().take(20).unwrap();
    }
}
