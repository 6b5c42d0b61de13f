//! API keys: who may do what, and how much of it.
//!
//! A key's text is 256 random bits with a public id in front. The server knows its SHA-256 only;
//! bits that nobody can guess need no slower hash.

mod entry;
mod file;
pub(crate) mod follow;
mod quota;
mod source;
mod stored;
mod text;

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, OnceLock};

use frazil::coord::internal::time::unix_ms;
use subtle::ConstantTimeEq;

pub use self::entry::{KeyEntry, Role};
pub use self::file::{KeysError, parse, read};
use self::quota::Allowance;
pub(crate) use self::quota::{LiveNodes, Quota, QuotaLeft};
pub use self::source::KeySource;
pub use self::stored::{STORED_BYTES_MAX, StoredKeys, StoredKeysError};
pub use self::text::NewKey;
pub(crate) use self::text::public_id;
use self::text::{HASH_BYTES, hash, id_of};
use crate::metrics::{KeyCounts, KeyMetrics};
use crate::net::certificate::{Certificate, CertificateName};

/// The keys that a server knows.
#[derive(Debug, Default)]
pub(crate) struct Keyring {
    by_id: HashMap<String, Arc<Key>>,
    by_certificate: HashMap<CertificateName, Arc<Key>>,
    /// The quotas by the name of their keys.
    quotas: HashMap<String, Arc<Quota>>,
    /// Whether the keys were not read yet: nobody knows who may come in.
    is_unread: bool,
}

/// A key as it is checked.
#[derive(Debug)]
pub(crate) struct Key {
    pub(crate) entry: KeyEntry,
    hash: [u8; HASH_BYTES],
    expires_ms: Option<u64>,
    /// The same for all keys of one name, and not 0.
    pub(crate) number: u64,
    pub(crate) quota: Option<Arc<Quota>>,
    /// Where it is counted, once it is in force.
    pub(crate) counts: OnceLock<KeyCounts>,
}

/// Why a key opens nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Denied {
    /// No key of that text is known.
    Unknown,
    /// It was one, until then.
    Expired(String),
    /// A certificate stands for the keys of these two, and of more perhaps.
    Several(String, String),
    /// The keys were not read yet.
    Unread,
}

impl Keyring {
    /// That none were read yet.
    pub(crate) fn unread() -> Self {
        Self { is_unread: true, ..Self::default() }
    }

    /// The keys of a list. What is left of quotas goes on from before where nothing changed.
    ///
    /// The keys of a name take from one quota, so that a key and the one that replaces it get no more
    /// than one of them. If they say different, the last one counts, which is the newest.
    pub(crate) fn new(entries: Vec<KeyEntry>, before: Option<&Self>, nodes: LiveNodes) -> Self {
        let mut quotas = HashMap::new();
        for (name, allowance) in
            entries.iter().filter_map(|entry| Some((&entry.name, allowance(entry)?)))
        {
            let kept = before.and_then(|before| before.quotas.get(name));
            let kept = kept.filter(|quota| quota.allowance() == allowance).cloned();
            let quota = kept.unwrap_or_else(|| Arc::new(Quota::new(allowance, nodes)));
            quotas.insert(name.clone(), quota);
        }
        let key = |entry: KeyEntry| {
            let quota = allowance(&entry).and_then(|_| quotas.get(&entry.name).cloned());
            let (hash, expires_ms) = (entry.hash(), entry.expires_ms());
            let number = number_of(&entry.name);
            let counts = OnceLock::new();
            (entry.id.clone(), Arc::new(Key { entry, hash, expires_ms, number, quota, counts }))
        };
        let by_id: HashMap<String, Arc<Key>> = entries.into_iter().map(key).collect();
        let mut by_certificate = HashMap::new();
        for key in by_id.values() {
            by_certificate.extend(key.entry.certificates().map(|name| (name, key.clone())));
        }
        Self { by_id, by_certificate, quotas, is_unread: false }
    }

    pub(crate) const fn is_unread(&self) -> bool {
        self.is_unread
    }

    /// Has the keys counted there from now on.
    pub(crate) fn count_in(&self, metrics: &KeyMetrics) {
        for key in self.by_id.values() {
            key.counts.get_or_init(|| metrics.of(&key.entry.name));
        }
    }

    /// Divides the quotas that are for all nodes by another number of them.
    pub(crate) fn divide(&self, nodes: LiveNodes) {
        self.quotas.values().for_each(|quota| quota.divide(nodes));
    }

    /// Whether any quota is for all nodes.
    pub(crate) fn has_cluster_quotas(&self) -> bool {
        let is_shared = |quota: &Arc<Quota>| matches!(quota.allowance(), Allowance::Cluster(_));
        self.quotas.values().any(is_shared)
    }

    /// Whether certificates stand for any of them.
    pub(crate) fn has_certificates(&self) -> bool {
        !self.by_certificate.is_empty()
    }

    pub(crate) fn entries(&self) -> Vec<KeyEntry> {
        self.by_id.values().map(|key| key.entry.clone()).collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.by_id.len()
    }

    /// The key of a text. The id says which one to look at; the comparison takes as long for a
    /// nearly right text as for any other.
    pub(crate) fn find(&self, text: &str) -> Result<&Arc<Key>, Denied> {
        if self.is_unread {
            return Err(Denied::Unread);
        }
        let key = id_of(text).and_then(|id| self.by_id.get(id)).ok_or(Denied::Unknown)?;
        match bool::from(hash(text).ct_eq(&key.hash)) {
            true => key.check_expiry().map(|()| key),
            false => Err(Denied::Unknown),
        }
    }

    /// The key whose public id a text has, whether or not it is that key's text.
    pub(crate) fn meant(&self, text: &str) -> Option<&Arc<Key>> {
        self.by_id.get(id_of(text)?)
    }

    /// The key that a certificate stands for, if it does for one.
    ///
    /// # Errors
    /// Why that key opens nothing.
    pub(crate) fn certified(
        &self,
        certificate: &Certificate,
    ) -> Result<Option<&Arc<Key>>, (&Arc<Key>, Denied)> {
        let mut found = certificate.names().iter().filter_map(|name| self.by_certificate.get(name));
        let Some(key) = found.next() else { return Ok(None) };
        if let Some(other) = found.find(|other| !Arc::ptr_eq(other, key)) {
            let names = (key.entry.name.clone(), other.entry.name.clone());
            return Err((key, Denied::Several(names.0, names.1)));
        }
        key.check_expiry().map(|()| Some(key)).map_err(|why| (key, why))
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
}

/// Names are few: that two have the same number, and share a turn, hardly happens.
fn number_of(name: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    hasher.finish().max(1)
}

fn allowance(entry: &KeyEntry) -> Option<Allowance> {
    let shared = entry.ids_per_second_cluster.map(Allowance::Cluster);
    shared.or_else(|| entry.ids_per_second.map(Allowance::Node))
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;

    const ALONE: LiveNodes = NonZeroU32::MIN;

    fn ring(change: impl FnOnce(&mut KeyEntry)) -> (String, Keyring) {
        let new = NewKey::mint().unwrap();
        let mut entry = KeyEntry::of(&new, "orders", vec![Role::Ids]);
        change(&mut entry);
        (new.text().to_owned(), Keyring::new(vec![entry], None, ALONE))
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
        assert!(Keyring::new(vec![entry.clone()], None, ALONE).renewed(key).is_ok());
        entry.sha256 = "0".repeat(64);
        assert!(Keyring::new(vec![entry], None, ALONE).renewed(key).is_err());
    }

    #[test]
    fn a_quota_goes_on_over_a_reload_unless_it_changes() {
        let (text, before) = ring(|entry| entry.ids_per_second = 10.try_into().ok());
        let key = before.find(&text).unwrap();
        key.quota.as_ref().unwrap().take(10).unwrap();
        let mut entry = key.entry.clone();
        let same = Keyring::new(vec![entry.clone()], Some(&before), ALONE);
        let quota = same.find(&text).unwrap().quota.clone().unwrap();
        assert!(quota.take(10).is_err());
        entry.ids_per_second = 20.try_into().ok();
        let more = Keyring::new(vec![entry], Some(&before), ALONE);
        more.find(&text).unwrap().quota.as_ref().unwrap().take(20).unwrap();
    }

    #[test]
    fn a_key_and_the_one_that_replaces_it_take_from_one_quota() {
        let (old, new) = (NewKey::mint().unwrap(), NewKey::mint().unwrap());
        let entry = |key: &NewKey, name: &str| KeyEntry {
            ids_per_second: 10.try_into().ok(),
            ..KeyEntry::of(key, name, vec![Role::Ids])
        };
        let free = NewKey::mint().unwrap();
        let unlimited = KeyEntry::of(&free, "orders", vec![Role::Ids]);
        let entries = vec![entry(&old, "orders"), entry(&new, "orders"), unlimited];
        let ring = Keyring::new(entries, None, ALONE);
        let quota = |key: &NewKey| ring.find(key.text()).unwrap().quota.clone();
        quota(&old).unwrap().take(10).unwrap();
        assert!(quota(&new).unwrap().take(10).is_err(), "rotation gave a second quota");
        assert!(quota(&free).is_none());
        let apart = vec![entry(&old, "orders"), entry(&new, "users")];
        let ring = Keyring::new(apart, None, ALONE);
        for key in [&old, &new] {
            ring.find(key.text()).unwrap().quota.as_ref().unwrap().take(10).unwrap();
        }
    }

    #[test]
    fn nobody_knows_who_may_come_in_before_the_keys_were_read() {
        assert_eq!(Keyring::unread().find("frz_1_2").unwrap_err(), Denied::Unread);
        assert_eq!(Keyring::default().find("frz_1_2").unwrap_err(), Denied::Unknown);
    }
}
