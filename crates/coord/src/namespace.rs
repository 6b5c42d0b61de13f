//! The name under which holders share slots.

use std::fmt;
use std::str::FromStr;

/// A named set of slots and their meta record. Different namespaces share no
/// records; with the same layout and workers they issue the same IDs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Namespace(String);

/// The text cannot name a namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamespaceError(String);

/// It is part of every key, path and file name.
const LENGTH_MAX: usize = 64;

impl Namespace {
    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The root when the URL names none.
const ETCD_ROOT_DEFAULT: &str = "frazil";

/// What all keys of a namespace in etcd start with, where a URL has this path. For those who
/// compare with a slot in transactions of their own.
#[must_use]
pub fn etcd_prefix(path: &str, namespace: &Namespace) -> String {
    let root = path.trim_matches('/');
    let root = if root.is_empty() { ETCD_ROOT_DEFAULT } else { root };
    format!("/{root}/{namespace}/")
}

impl Default for Namespace {
    fn default() -> Self {
        Self("default".into())
    }
}

impl FromStr for Namespace {
    type Err = NamespaceError;

    fn from_str(text: &str) -> Result<Self, NamespaceError> {
        let fits = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        let is_name = (1..=LENGTH_MAX).contains(&text.len())
            && text.chars().all(fits)
            && !text.starts_with('.');
        if is_name { Ok(Self(text.into())) } else { Err(NamespaceError(text.into())) }
    }
}

impl fmt::Display for Namespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for NamespaceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} cannot name a namespace: use 1 to {LENGTH_MAX} letters, digits, '.', '_' or '-', \
             not starting with '.'",
            self.0
        )
    }
}

impl std::error::Error for NamespaceError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_is_safe_in_keys_and_paths() {
        assert!("orders-eu.v2".parse::<Namespace>().is_ok());
        for bad in ["", ".", "..", "a/b", "a{b}", "a b", "a:b"] {
            assert!(bad.parse::<Namespace>().is_err(), "{bad:?}");
        }
    }
}
