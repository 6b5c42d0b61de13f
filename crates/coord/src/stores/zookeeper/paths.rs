//! The paths in the tree of a namespace.
//!
//! | path | kind | what |
//! |---|---|---|
//! | `meta` | persistent | meta, JSON |
//! | `w/7`, `e/NAME`, `s/NAME`, `k/all` | persistent | a slot's record, JSON |
//! | `own/w-7` | ephemeral | somebody is present in the slot; the holder's nonce |
//! | `born/w-7` | persistent | the slot was used; counts how often its record was created |
//!
//! All marks of presence have one parent, so that one listing tells which slots are held.

use crate::namespace::Namespace;
use crate::slot::{Group, Slot};
use crate::url::StoreUrl;

/// Above the namespaces when the URL has no path.
const ROOT_DEFAULT: &str = "frazil";

/// The paths of one namespace.
#[derive(Clone, Debug)]
pub(super) struct Paths {
    root: String,
    base: String,
}

impl Paths {
    pub(super) fn new(url: &StoreUrl, namespace: &Namespace) -> Result<Self, String> {
        let path = if url.path.is_empty() { ROOT_DEFAULT } else { &url.path };
        let fits = |part: &str| {
            !matches!(part, "" | "." | ".." | "zookeeper") && !part.chars().any(char::is_control)
        };
        if !path.split('/').all(fits) {
            return Err("the path of the URL is not one of ZooKeeper".into());
        }
        let root = format!("/{path}");
        Ok(Self { base: format!("{root}/{namespace}"), root })
    }

    /// What namespaces share.
    pub(super) fn root(&self) -> &str {
        &self.root
    }

    /// What all nodes of the namespace are under.
    pub(super) fn base(&self) -> &str {
        &self.base
    }

    pub(super) fn meta(&self) -> String {
        format!("{}/meta", self.base)
    }

    pub(super) fn group(&self, group: Group) -> String {
        format!("{}/{}", self.base, group.letter())
    }

    pub(super) fn owners(&self) -> String {
        format!("{}/own", self.base)
    }

    pub(super) fn use_marks(&self) -> String {
        format!("{}/born", self.base)
    }

    pub(super) fn record(&self, slot: &Slot) -> String {
        format!("{}/{}", self.group(slot.group()), slot.name())
    }

    pub(super) fn own(&self, slot: &Slot) -> String {
        format!("{}/own/{}", self.base, mark(slot))
    }

    pub(super) fn born(&self, slot: &Slot) -> String {
        format!("{}/born/{}", self.base, mark(slot))
    }

    /// The nodes that the others are under, parents first.
    pub(super) fn parents(&self) -> Vec<String> {
        let mut parents = vec![self.base.clone(), self.owners(), self.use_marks()];
        parents.extend(Group::ALL.iter().map(|group| self.group(*group)));
        parents
    }
}

/// The slot of a group that a mark under `own` or `born` stands for.
pub(super) fn slot_of_mark(group: Group, mark: &str) -> Option<Slot> {
    let name = mark.strip_prefix(group.letter())?.strip_prefix('-')?;
    Slot::named(group, name).ok()
}

/// The number of a worker that a name stands for. Pools are long and listed often.
pub(super) fn worker_of(name: &str) -> Option<u32> {
    let is_plain =
        name.bytes().all(|b| b.is_ascii_digit()) && (name == "0" || !name.starts_with('0'));
    name.parse().ok().filter(|_| is_plain)
}

/// The number of a worker that a mark under `own` or `born` stands for.
pub(super) fn worker_of_mark(mark: &str) -> Option<u32> {
    worker_of(mark.strip_prefix(Group::Workers.letter())?.strip_prefix('-')?)
}

fn mark(slot: &Slot) -> String {
    format!("{}-{}", slot.group().letter(), slot.name())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(url: &str) -> Result<Paths, String> {
        Paths::new(&url.parse().unwrap(), &"ns".parse().unwrap())
    }

    #[test]
    fn a_slot_has_three_nodes_and_its_mark_leads_back_to_it() {
        let paths = paths("zk://h/a/b").unwrap();
        let slot = Slot::named(Group::Elections, "e-1").unwrap();
        assert_eq!(paths.record(&slot), "/a/b/ns/e/e-1");
        assert_eq!(paths.own(&slot), "/a/b/ns/own/e-e-1");
        assert_eq!(paths.born(&slot), "/a/b/ns/born/e-e-1");
        assert_eq!(slot_of_mark(Group::Elections, "e-e-1"), Some(slot));
        assert_eq!(slot_of_mark(Group::Workers, "e-e-1"), None);
        assert_eq!(slot_of_mark(Group::Workers, "w-07"), None);
        for name in ["7", "0", "10", "07", "+7", "", "x", "4294967296"] {
            let number = Slot::named(Group::Workers, name).ok().and_then(|slot| slot.number());
            assert_eq!(worker_of(name), number, "{name}");
            assert_eq!(worker_of_mark(&format!("w-{name}")), number, "{name}");
        }
    }

    #[test]
    fn a_path_that_zookeeper_would_refuse_is_refused_first() {
        assert_eq!(paths("zk://h").unwrap().meta(), "/frazil/ns/meta");
        for url in ["zk://h/a//b", "zk://h/..", "zk://h/a%00b", "zk://h/zookeeper"] {
            assert!(paths(url).is_err(), "{url}");
        }
    }
}
