//! Warnings about settings between nodes with which a server starts all the same.

use std::num::NonZeroU32;
use std::path::Path;

use crate::cluster::scopes::DeclaredScope;
use crate::policy::keys::{KeyEntry, Keyring, Role};

/// Something that should be set right, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PeerWarning {
    /// What is wrong.
    pub(crate) detail: String,
    /// What to do about it.
    pub(crate) fix: String,
}

/// How nodes ask each other for IDs of strict scopes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PeerSettings<'a> {
    /// The declared scopes.
    pub(crate) scopes: &'a [DeclaredScope],
    /// The keys that this node knows, if it asks for any.
    pub(crate) keys: Option<&'a [KeyEntry]>,
    /// The file with the key that is shown to other nodes.
    pub(crate) key_file: Option<&'a Path>,
    /// The authorities of other nodes.
    pub(crate) ca: Option<&'a Path>,
}

impl PeerSettings<'_> {
    /// What should be set right; nothing where no strict scope is declared, or are no keys.
    #[must_use]
    pub(crate) fn warnings(&self) -> Vec<PeerWarning> {
        let Some(keys) = self.keys.filter(|_| self.scopes.iter().any(DeclaredScope::is_strict))
        else {
            return Vec::new();
        };
        let open = self.ca.is_none().then(|| PeerWarning {
            detail: "strict scopes are forwarded without TLS: the nodes' key is shown to whoever \
                     the store names as their leader"
                .to_owned(),
            fix: "give nodes certificates (--tls-cert, --tls-key) and name their authority: --peer-ca"
                .to_owned(),
        });
        let key = self.key_file.and_then(|path| of_key(path, keys));
        open.into_iter().chain(key).collect()
    }
}

/// What is wrong with the nodes' own key, if it is known here.
fn of_key(path: &Path, keys: &[KeyEntry]) -> Option<PeerWarning> {
    let ring = Keyring::new(keys.to_vec(), None, NonZeroU32::MIN);
    let text = std::fs::read_to_string(path).ok()?;
    let entry = &ring.find(text.trim()).ok()?.entry;
    let has_quota = entry.ids_per_second.is_some() || entry.ids_per_second_cluster.is_some();
    let (what, change) = match entry.roles.contains(&Role::Peer) {
        false => (
            "does not have the role peer: other nodes refuse what this one forwards",
            "add peer to its roles",
        ),
        true if has_quota => {
            ("has a quota: other nodes refuse what this one forwards beyond it", "remove its quota")
        }
        true => return None,
    };
    Some(PeerWarning {
        detail: format!("the key in {}, {} of {}, {what}", path.display(), entry.id, entry.name),
        fix: format!(
            "{change} in the file of keys of every node, and kill -HUP them; or make another one: \
             frazil key new --name nodes --role peer"
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::keys::NewKey;

    #[test]
    fn nodes_are_warned_of_a_missing_authority_and_of_a_key_without_the_role_or_with_a_quota() {
        let (new, file) = (NewKey::mint().unwrap(), tempfile::NamedTempFile::new().unwrap());
        std::fs::write(file.path(), new.text()).unwrap();
        let entry = |roles| [KeyEntry::of(&new, "nodes", roles)];
        let (peer, ids) = (entry(vec![Role::Peer]), entry(vec![Role::Ids]));
        let strict = [DeclaredScope::strict("orders")];
        let plain = ["web".into()];
        let ca = Some(Path::new("ca.pem"));
        let warned = |scopes: &[DeclaredScope], keys: Option<&[KeyEntry]>, ca| {
            let key_file = Some(file.path());
            PeerSettings { scopes, keys, key_file, ca }.warnings()
        };
        assert_eq!(warned(&strict, Some(&peer), ca), []);
        assert_eq!(warned(&strict, None, None), []);
        assert_eq!(warned(&plain, Some(&ids), None), []);
        let open = warned(&strict, Some(&peer), None);
        assert!(open.len() == 1 && open[0].fix.contains("--peer-ca"), "{open:?}");
        let role = warned(&strict, Some(&ids), ca);
        assert!(role.len() == 1 && role[0].detail.contains("role peer"), "{role:?}");
        assert!(!role[0].detail.contains(new.text()), "the key itself is not shown");
        let mut limited = peer.clone();
        limited[0].ids_per_second = NonZeroU32::new(10);
        let quota = warned(&strict, Some(&limited), ca);
        assert!(quota.len() == 1 && quota[0].fix.starts_with("remove its quota"), "{quota:?}");
    }
}
