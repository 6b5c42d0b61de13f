//! The names of keys.
//!
//! | key | what | lives |
//! |---|---|---|
//! | `meta` | the namespace's meta record | for ever |
//! | `w/7`, `e/NAME`, `s/NAME`, `k/all` | the record of a slot | for ever |
//! | `own/w/7` | that somebody is present in it: the nonce | as long as a lease |
//! | `born/w/7` | that it was ever used; written again by every change of holder | for ever |
//! | `claim/NONCE` | that a commit of several changes was served, and with which slot | while the slot carries the nonce |
//!
//! All of them start with `/ROOT/NAMESPACE/`.

use crate::Namespace;
use crate::nonce::Nonce;
use crate::slot::{Group, Slot};

/// Makes and reads the keys of one namespace.
#[derive(Clone, Debug)]
pub(super) struct Keys {
    prefix: String,
}

/// What a key stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum KeyTarget {
    Meta,
    Record(Slot),
    Own(Slot),
    Born(Slot),
    Claim,
}

impl Keys {
    pub(super) fn new(root: &str, namespace: &Namespace) -> Self {
        Self { prefix: crate::namespace::etcd_prefix(root, namespace) }
    }

    /// What the keys of all namespaces of the same root start with.
    pub(super) fn root(&self) -> &str {
        let above = self.prefix.trim_end_matches('/').rfind('/').unwrap_or(0);
        &self.prefix[..=above]
    }

    pub(super) fn meta(&self) -> String {
        format!("{}meta", self.prefix)
    }

    pub(super) fn record(&self, slot: &Slot) -> String {
        format!("{}{slot}", self.prefix)
    }

    pub(super) fn own(&self, slot: &Slot) -> String {
        format!("{}own/{slot}", self.prefix)
    }

    pub(super) fn born(&self, slot: &Slot) -> String {
        format!("{}born/{slot}", self.prefix)
    }

    pub(super) fn claim(&self, nonce: Nonce) -> String {
        format!("{}claim/{nonce}", self.prefix)
    }

    /// What all records of a kind start with.
    pub(super) fn records(&self, group: Group) -> String {
        format!("{}{}/", self.prefix, group.letter())
    }

    /// What all presence of a kind starts with.
    pub(super) fn owns(&self, group: Group) -> String {
        format!("{}own/{}/", self.prefix, group.letter())
    }

    /// What all markers of a kind start with.
    pub(super) fn borns(&self, group: Group) -> String {
        format!("{}born/{}/", self.prefix, group.letter())
    }

    /// What a key stands for; `None` if it is none of ours.
    pub(super) fn place(&self, key: &[u8]) -> Option<KeyTarget> {
        let name = std::str::from_utf8(key).ok()?.strip_prefix(&self.prefix)?;
        if name == "meta" {
            return Some(KeyTarget::Meta);
        }
        let (kind, rest) = name.split_once('/')?;
        match kind {
            "own" => slot(rest).map(KeyTarget::Own),
            "born" => slot(rest).map(KeyTarget::Born),
            "claim" => Some(KeyTarget::Claim),
            _ => slot(name).map(KeyTarget::Record),
        }
    }
}

/// The slot that a text names, as keys and claims do.
pub(super) fn slot(name: &str) -> Option<Slot> {
    let (letter, name) = name.split_once('/')?;
    let group = Group::ALL.iter().copied().find(|group| group.letter() == letter)?;
    Slot::named(group, name).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_leads_back_to_its_slot() {
        for root in ["", "deep/root"] {
            let keys = Keys::new(root, &Namespace::default());
            let election = Slot::named(Group::Elections, "own").unwrap();
            for slot in [Slot::worker(7), election] {
                let place = |key: String| keys.place(key.as_bytes());
                assert_eq!(place(keys.record(&slot)), Some(KeyTarget::Record(slot.clone())));
                assert_eq!(place(keys.own(&slot)), Some(KeyTarget::Own(slot.clone())));
                assert_eq!(place(keys.born(&slot)), Some(KeyTarget::Born(slot.clone())));
            }
            assert_eq!(keys.place(keys.meta().as_bytes()), Some(KeyTarget::Meta));
            let claim = keys.claim(Nonce::from_bits(7));
            assert_eq!(keys.place(claim.as_bytes()), Some(KeyTarget::Claim));
        }
    }

    #[test]
    fn foreign_keys_are_not_ours() {
        let keys = Keys::new("", &Namespace::default());
        for key in ["/frazil/default2/meta", "/frazil/default/w/07", "/frazil/default/x/7", ""] {
            assert_eq!(keys.place(key.as_bytes()), None, "{key}");
        }
        assert_eq!(keys.place(b"/frazil/default/w/\xff"), None);
    }
}
