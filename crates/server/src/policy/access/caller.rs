//! Callers: whose request it is, and what its key gives.

use std::sync::Arc;

use frazil_wire::{ApiError, Reason};

use super::Permission;
use crate::net::remote::Remote;
use crate::policy::audit::{self, KeyOwner, RefusalKind};
use crate::policy::keys::{Denied, Key, Keyring, Quota, QuotaLeft, Role};
use crate::policy::queue::Count;

/// Who makes a request.
#[derive(Clone, Debug)]
pub(crate) enum Caller {
    /// Nobody had to say.
    Anybody,
    /// The holder of a key.
    Key(KeyHolder),
}

/// Somebody who has shown a key, or a certificate that stands for one.
#[derive(Clone, Debug)]
pub(crate) struct KeyHolder {
    pub(super) key: Arc<Key>,
    remote: Remote,
    /// Whether a certificate was shown, and no key.
    pub(super) is_certified: bool,
}

impl Caller {
    pub(super) fn new(key: &Arc<Key>, remote: &Remote, is_certified: bool) -> Self {
        Self::Key(KeyHolder { key: key.clone(), remote: remote.clone(), is_certified })
    }

    /// The key, if there is one.
    pub(crate) fn key(&self) -> Option<&Arc<Key>> {
        match self {
            Self::Anybody => None,
            Self::Key(holder) => Some(&holder.key),
        }
    }

    /// Whether the key has the role that so many requests need; if not, that is logged once, and each
    /// is counted.
    pub(crate) fn check(&self, permission: Permission, requests: u64) -> Result<(), ApiError> {
        let (Self::Key(holder), Some(role)) = (self, self.missing(permission)) else {
            return Ok(());
        };
        let name = &holder.key.entry.name;
        let detail = format_args!("the key of {name} does not have the role {role}");
        Err(holder.refused(RefusalKind::Role, &ApiError::new(Reason::Forbidden, detail), requests))
    }

    /// Whether the key has the role, where those without it get something else.
    pub(crate) fn may(&self, permission: Permission) -> bool {
        self.missing(permission).is_none()
    }

    /// The role that the key does not have.
    fn missing(&self, permission: Permission) -> Option<&'static str> {
        let roles = &self.key()?.entry.roles;
        let has = |role| roles.contains(&role);
        let (may, role) = match permission {
            Permission::Nothing | Permission::AnyKey => return None,
            Permission::Ids => (has(Role::Ids), "ids"),
            Permission::Peer => (has(Role::Peer), "peer"),
            Permission::Read => (has(Role::Read) || has(Role::Admin), "read"),
            Permission::Admin => (has(Role::Admin), "admin"),
        };
        (!may).then_some(role)
    }

    /// Whether the key may name the scope, in so many requests.
    pub(crate) fn check_scope(&self, scope: Option<&str>, requests: u64) -> Result<(), ApiError> {
        let Self::Key(holder) = self else { return Ok(()) };
        let Some(scopes) = &holder.key.entry.scopes else { return Ok(()) };
        if scope.is_some_and(|scope| scopes.iter().any(|own| own == scope)) {
            return Ok(());
        }
        let (name, own) = (&holder.key.entry.name, scopes.join(", "));
        let detail = format_args!("the key of {name} is for the scopes {own} alone: name one");
        Err(holder.refused(RefusalKind::Scope, &ApiError::new(Reason::Forbidden, detail), requests))
    }

    /// Whether a user of that name may be the holder of the key, as RESP clients name one.
    pub(crate) fn check_user(&self, user: &[u8]) -> Result<(), ApiError> {
        let Self::Key(holder) = self else { return Ok(()) };
        if user == b"default" || user == holder.key.entry.name.as_bytes() {
            return Ok(());
        }
        let detail = "the user must be default, or the name of the key";
        Err(holder.refused(RefusalKind::User, &ApiError::new(Reason::Unauthenticated, detail), 1))
    }

    /// Takes from the key's quota what a request wants, or what there is of it where less will do;
    /// gives how many, and what is left. `None` if the key has no quota.
    pub(crate) fn charge(&self, count: Count) -> Result<Option<(u32, QuotaLeft)>, ApiError> {
        self.quota().map(|quota| quota.charge(count)).transpose()
    }

    /// Tells callers apart: keys of one name are one caller; 0 for those who need none.
    pub(crate) fn number(&self) -> u64 {
        self.key().map_or(0, |key| key.number)
    }

    pub(crate) fn quota(&self) -> Option<&Quota> {
        self.key()?.quota.as_deref()
    }

    /// The key's quota with nothing left, if it has one.
    pub(crate) fn used_up(&self) -> Option<QuotaLeft> {
        let per_second = self.quota()?.per_second();
        Some(QuotaLeft { per_second, remaining: 0 })
    }

    /// Counts so many requests that the caller was refused; what is about keys is counted here already.
    pub(crate) fn count_refused(&self, error: &ApiError, requests: u64) {
        if let Self::Key(holder) = self {
            holder.count_refused(error, requests);
        }
    }
}

impl KeyHolder {
    /// The key that is the holder's now: a certificate may stand for another one than before.
    pub(super) fn renewed<'a>(&self, keys: &'a Keyring) -> Result<&'a Arc<Key>, Denied> {
        match &self.remote.certificate {
            Some(certificate) if self.is_certified => {
                let found = keys.certified(certificate).map_err(|(_, why)| why)?;
                found.ok_or(Denied::Unknown)
            }
            _ => keys.renewed(&self.key),
        }
    }

    /// Logs and counts what the holder may not do.
    pub(super) fn refused(&self, what: RefusalKind, error: &ApiError, requests: u64) -> ApiError {
        audit::refused(&self.remote, KeyOwner::Known(&self.key), what, error);
        self.count_refused(error, requests);
        error.clone()
    }

    fn count_refused(&self, error: &ApiError, requests: u64) {
        if let Some(counts) = self.key.counts.get() {
            counts.refused(error.reason, requests);
        }
    }
}
