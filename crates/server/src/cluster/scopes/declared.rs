//! Scopes as they are declared.

use std::fmt;

use frazil_wire::ScopeKind;

use crate::app::BindError;

/// Scopes are labels of metrics and words on the wire; more would be another design.
pub(crate) const SCOPES_MAX: usize = 100;

/// A scope that may be named.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeclaredScope {
    /// Its name.
    pub name: String,
    /// What it promises.
    pub kind: ScopeKind,
}

impl DeclaredScope {
    /// One that is a label of metrics and no more.
    #[must_use]
    pub fn plain(name: impl Into<String>) -> Self {
        Self { name: name.into(), kind: ScopeKind::Plain }
    }

    /// One whose IDs strictly increase across the cluster.
    #[must_use]
    pub fn strict(name: impl Into<String>) -> Self {
        Self { name: name.into(), kind: ScopeKind::Strict }
    }

    /// Reads `orders`, `orders=plain` or `orders=strict`.
    ///
    /// # Errors
    /// If that is none.
    pub fn parse(text: &str) -> Result<Self, BindError> {
        let (name, kind) = match text.split_once('=') {
            None => (text, ScopeKind::Plain),
            Some((name, "plain")) => (name, ScopeKind::Plain),
            Some((name, "strict")) => (name, ScopeKind::Strict),
            Some(_) => return Err(BindError::ScopeKind(text.to_owned())),
        };
        let scope = Self { name: name.to_owned(), kind };
        check_scopes(std::slice::from_ref(&scope)).map(|()| scope)
    }

    /// Whether its IDs strictly increase across the cluster.
    #[must_use]
    pub fn is_strict(&self) -> bool {
        self.kind == ScopeKind::Strict
    }
}

impl From<&str> for DeclaredScope {
    fn from(name: &str) -> Self {
        Self::plain(name)
    }
}

/// As it is declared.
impl fmt::Display for DeclaredScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            ScopeKind::Plain => f.write_str(&self.name),
            kind => write!(f, "{}={kind}", self.name),
        }
    }
}

/// Checks the names of scopes.
///
/// # Errors
/// The first that is none, or that there are too many.
pub fn check_scopes(scopes: &[DeclaredScope]) -> Result<(), BindError> {
    if scopes.len() > SCOPES_MAX {
        return Err(BindError::TooManyScopes(scopes.len()));
    }
    let is_name = |scope: &str| {
        (1..=64).contains(&scope.len())
            && scope.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b))
    };
    let is_twice =
        |scope: &&DeclaredScope| scopes.iter().filter(|other| other.name == scope.name).count() > 1;
    if let Some(twice) = scopes.iter().find(is_twice) {
        return Err(BindError::ScopeTwice(twice.name.clone()));
    }
    let is_known =
        |scope: &DeclaredScope| matches!(scope.kind, ScopeKind::Plain | ScopeKind::Strict);
    if let Some(unknown) = scopes.iter().find(|scope| !is_known(scope)) {
        return Err(BindError::ScopeKind(unknown.to_string()));
    }
    // The name of a strict scope is part of keys, paths and file names of the store.
    let fits = |scope: &DeclaredScope| {
        is_name(&scope.name) && !(scope.is_strict() && scope.name.starts_with('.'))
    };
    match scopes.iter().find(|scope| !fits(scope)) {
        Some(bad) => Err(BindError::Scope(bad.name.clone())),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_is_declared_by_name_and_kind() {
        let parsed = |text: &str| DeclaredScope::parse(text).map_err(|error| error.to_string());
        assert_eq!(parsed("web"), Ok(DeclaredScope::plain("web")));
        assert_eq!(parsed("web=plain"), Ok(DeclaredScope::plain("web")));
        assert_eq!(parsed("orders=strict"), Ok(DeclaredScope::strict("orders")));
        for (text, why) in [
            ("orders=stict", "name=plain or name=strict"),
            ("orders=", "name=plain or name=strict"),
            ("=strict", "not a scope's name"),
            ("a b=strict", "not a scope's name"),
            (".a=strict", "not a scope's name"),
            ("", "not a scope's name"),
        ] {
            let error = parsed(text).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
        let unknown = DeclaredScope { kind: ScopeKind::Unknown, ..DeclaredScope::plain("web") };
        assert!(matches!(check_scopes(&[unknown]), Err(BindError::ScopeKind(_))));
        for text in ["web", "orders=strict"] {
            assert_eq!(parsed(text).unwrap().to_string(), text);
        }
    }
}
