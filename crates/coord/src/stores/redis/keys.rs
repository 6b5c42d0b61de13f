//! The names of keys.

use crate::namespace::Namespace;
use crate::slot::Group;

/// The keys of a namespace, which share one hash tag: a script sees all of them, and in a cluster
/// they are on one master.
///
/// | key | what |
/// |---|---|
/// | `{prefix:namespace}:meta` | meta, as JSON |
/// | `...:lineage` | a hash: the last history, when it and the last fork began, what settles in it, which groups are in `born`; versions before this one keep more in it |
/// | `...:w`, `...:e`, `...:s`, `...:k` | hashes: the records of workers, elections, scopes and API keys, as JSON |
/// | `...:born` | a set: every slot that was ever used, such as `w/7`, and `w/` for the group |
/// | `...:w:idx` | a sorted set: free workers by horizon |
/// | `...:w:held` | a sorted set: held workers by expiry |
/// | `...:w:nonces` | a hash: which worker a claim of any got |
/// | `...:forgotten_replicas` | a set: addresses of replicas that an operator has given up |
/// | `...:ev` | a channel: which slot changed |
#[derive(Clone, Debug)]
pub(super) struct Keys {
    tag: String,
    namespace: Namespace,
}

impl Keys {
    pub(super) fn new(prefix: &str, namespace: &Namespace) -> Self {
        Self { tag: format!("{{{prefix}:{namespace}}}"), namespace: namespace.clone() }
    }

    pub(super) const fn namespace(&self) -> &Namespace {
        &self.namespace
    }

    /// What all begin with.
    pub(super) fn tag(&self) -> &str {
        &self.tag
    }

    /// In the order that scripts expect.
    pub(super) fn all(&self, group: Group) -> [String; 7] {
        let key = |rest: &str| format!("{}:{rest}", self.tag);
        [
            self.meta(),
            key("lineage"),
            self.records(group),
            self.born(),
            key("w:idx"),
            key("w:held"),
            key("w:nonces"),
        ]
    }

    pub(super) fn meta(&self) -> String {
        format!("{}:meta", self.tag)
    }

    pub(super) fn records(&self, group: Group) -> String {
        format!("{}:{}", self.tag, group.letter())
    }

    pub(super) fn born(&self) -> String {
        format!("{}:born", self.tag)
    }

    pub(super) fn forgotten_replicas(&self) -> String {
        format!("{}:forgotten_replicas", self.tag)
    }

    pub(super) fn channel(&self) -> String {
        format!("{}:ev", self.tag)
    }
}
