//! The comparison in a transaction of etcd by which only the present leader's is carried out.

use std::fmt;

use frazil_coord::internal::etcd_prefix;
use frazil_coord::{Group, NameError, Namespace, Scheme, Slot, StoreUrl, Token};

/// An election in etcd, to be compared with in transactions on the same etcd.
///
/// A transaction with both compares is carried out only while the leadership with that token lasts:
/// it is refused from the moment that the presence of its leader ended, and not only once a
/// successor has written. Nothing has to be raised, and what is guarded needs no fence of its own.
///
/// ```
/// use frazil_election::fence::{EtcdFence, EtcdTarget};
/// use frazil_coord::{Namespace, Token};
///
/// let url = "etcd://10.0.0.1:2379".parse()?;
/// let fence = EtcdFence::new(&url, &Namespace::default(), "reports")?;
/// let [elected, present] = fence.compares(Token(1_794_745_654_763));
/// assert_eq!(elected.key, "/frazil/default/born/e/reports");
/// assert_eq!(elected.target, EtcdTarget::ValueIs("1794745654763".into()));
/// assert_eq!(present.key, "/frazil/default/own/e/reports");
/// assert_eq!(present.target, EtcdTarget::Exists);
/// // With `frazil-etcd`; other clients have the same two: TxnRequest { compare: vec![
/// //     Compare::value(elected.key, CompareResult::Equal, "1794745654763"),
/// //     Compare::create_revision(present.key, CompareResult::Greater, 0),
/// // ], success: ..., failure: vec![] }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EtcdFence {
    /// Says which token was elected last; written by every election and by nothing else.
    elected: String,
    /// Is there while a leader is.
    present: String,
}

/// One comparison of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EtcdCompare {
    /// The key.
    pub key: String,
    /// What must hold of it.
    pub target: EtcdTarget,
}

/// What must hold of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EtcdTarget {
    /// Its value is this one (`VALUE EQUAL`).
    ValueIs(String),
    /// It exists (`CREATE GREATER 0`).
    Exists,
}

/// Why an election cannot be compared with.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NoEtcd {
    /// The URL is not one of etcd.
    OtherStore(String),
    /// No election has such a name.
    Name(NameError),
}

impl EtcdFence {
    /// The election of a name, in the namespace of a store.
    ///
    /// # Errors
    /// If the URL is not one of etcd, or the name is none.
    pub fn new(url: &StoreUrl, namespace: &Namespace, election: &str) -> Result<Self, NoEtcd> {
        if url.scheme != Scheme::Etcd {
            return Err(NoEtcd::OtherStore(url.to_string()));
        }
        let slot = Slot::named(Group::Elections, election).map_err(NoEtcd::Name)?;
        let prefix = etcd_prefix(&url.path, namespace);
        Ok(Self { elected: format!("{prefix}born/{slot}"), present: format!("{prefix}own/{slot}") })
    }

    /// What a transaction must compare with: both.
    #[must_use]
    pub fn compares(&self, token: Token) -> [EtcdCompare; 2] {
        let elected = EtcdTarget::ValueIs(token.to_string());
        [
            EtcdCompare { key: self.elected.clone(), target: elected },
            EtcdCompare { key: self.present.clone(), target: EtcdTarget::Exists },
        ]
    }
}

impl fmt::Display for NoEtcd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OtherStore(url) => write!(
                f,
                "{url} is not etcd: compare within the store that the election is held in, or \
                 keep a fence beside the data"
            ),
            Self::Name(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for NoEtcd {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_election_in_etcd_can_be_compared_with() {
        let of = |url: &str, name: &str| {
            EtcdFence::new(&url.parse().unwrap(), &Namespace::default(), name)
        };
        assert!(matches!(of("redis://127.0.0.1", "x"), Err(NoEtcd::OtherStore(_))));
        assert!(matches!(of("etcd://127.0.0.1", "a/b"), Err(NoEtcd::Name(_))));
        let deep = of("etcds://127.0.0.1/deep/root/", "x").unwrap();
        assert_eq!(deep.present, "/deep/root/default/own/e/x");
    }
}
