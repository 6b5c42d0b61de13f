//! Who may do what: what each request needs, and what its key gives.

use std::sync::Arc;

use arc_swap::{ArcSwapOption, Guard};
use frazil_wire::{ApiError, Reason};

use crate::keys::{Denied, Key, Keyring, Left, Quota, Role, public_id};

/// What a request needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Nothing: probes, descriptions, and what keys are shown with.
    Nothing,
    /// A key, whatever its roles.
    AnyKey,
    /// The role `ids`.
    Ids,
    /// The role `read`, which `admin` has too.
    Read,
    /// The role `admin`.
    Admin,
}

/// The listener that a request came through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Door {
    /// The one for everybody.
    Front,
    /// The one for administrators.
    Admin,
}

/// Checks keys, as long as there are any.
#[derive(Debug)]
pub(crate) struct Gate {
    keys: ArcSwapOption<Keyring>,
    open_metrics: bool,
    /// Whether administrators have a listener of their own.
    is_admin_apart: bool,
}

/// Whose request it is.
#[derive(Clone, Debug)]
pub(crate) enum Caller {
    /// Nobody had to say.
    Anybody,
    /// The owner of this key.
    Key(Arc<Key>),
}

impl Gate {
    pub(crate) fn new(keys: Option<Keyring>, open_metrics: bool, is_admin_apart: bool) -> Self {
        let keys = ArcSwapOption::from(keys.map(Arc::new));
        Self { keys, open_metrics, is_admin_apart }
    }

    /// The keys in force; none if nobody needs one.
    pub(crate) fn keys(&self) -> Guard<Option<Arc<Keyring>>> {
        self.keys.load()
    }

    /// Puts other keys in force.
    pub(crate) fn replace(&self, keys: Keyring) {
        self.keys.store(Some(Arc::new(keys)));
    }

    pub(crate) const fn has_open_metrics(&self) -> bool {
        self.open_metrics
    }

    /// Whether what administrators do is done through this door.
    pub(crate) fn serves_admin(&self, door: Door) -> bool {
        door == Door::Admin || !self.is_admin_apart
    }

    /// Looks again at a key that was shown before: it may have ended, or changed.
    ///
    /// # Errors
    /// If it is none any more.
    pub(crate) fn renew(&self, caller: &mut Caller) -> Result<(), ApiError> {
        let (Caller::Key(key), keys) = (caller, self.keys.load()) else { return Ok(()) };
        let Some(keys) = keys.as_deref() else { return Ok(()) };
        let now = keys.renewed(key).map_err(denied)?;
        if !Arc::ptr_eq(now, key) {
            *key = now.clone();
        }
        Ok(())
    }

    /// Lets in who shows a key that gives what is needed.
    ///
    /// # Errors
    /// What is missing.
    pub(crate) fn admit(
        &self,
        shown: Option<&str>,
        need: Need,
        door: Door,
    ) -> Result<Caller, ApiError> {
        if need == Need::Nothing {
            return Ok(Caller::Anybody);
        }
        let keys = self.keys.load();
        let Some(keys) = keys.as_deref() else { return without_keys(need, door) };
        let shown = shown.ok_or_else(|| {
            let detail = "send a key: Authorization: Bearer KEY";
            ApiError::new(Reason::Unauthenticated, detail)
        })?;
        let key = keys.find(shown).map_err(|why| {
            tracing::warn!(id = public_id(shown), ?why, "a key was shown that opens nothing");
            denied(why)
        })?;
        let caller = Caller::Key(key.clone());
        caller.check(need).map(|()| caller).inspect_err(|error| {
            tracing::warn!(id = key.entry.id, "{}", error.detail);
        })
    }
}

/// Without keys everybody may do everything, but administer only where administrators listen.
fn without_keys(need: Need, door: Door) -> Result<Caller, ApiError> {
    if need == Need::Admin && door == Door::Front {
        let detail = "this needs the role admin: start the server with --keys, or with a listener \
                      for administrators, --admin";
        return Err(ApiError::new(Reason::Forbidden, detail));
    }
    Ok(Caller::Anybody)
}

/// The key in an `Authorization` header.
pub(crate) fn bearer(header: &[u8]) -> Option<&str> {
    let (scheme, key) = std::str::from_utf8(header).ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(key.trim_matches(' '))
}

/// What somebody hears whose key is none.
pub(crate) fn denied(why: Denied) -> ApiError {
    let detail = match why {
        Denied::Unknown => "the key is unknown: it was mistyped, revoked or never there".to_owned(),
        Denied::Expired(when) => format!("the key expired at {when}"),
    };
    ApiError::new(Reason::Unauthenticated, detail)
}

impl Caller {
    /// Whether the key has the role.
    pub(crate) fn check(&self, need: Need) -> Result<(), ApiError> {
        let Self::Key(key) = self else { return Ok(()) };
        let has = |role| key.entry.roles.contains(&role);
        let (may, role) = match need {
            Need::Nothing | Need::AnyKey => return Ok(()),
            Need::Ids => (has(Role::Ids), "ids"),
            Need::Read => (has(Role::Read) || has(Role::Admin), "read"),
            Need::Admin => (has(Role::Admin), "admin"),
        };
        if may {
            return Ok(());
        }
        let name = &key.entry.name;
        let detail = format_args!("the key of {name} does not have the role {role}");
        Err(ApiError::new(Reason::Forbidden, detail))
    }

    /// Whether the key may name the scope.
    pub(crate) fn check_scope(&self, scope: Option<&str>) -> Result<(), ApiError> {
        let Self::Key(key) = self else { return Ok(()) };
        let Some(scopes) = &key.entry.scopes else { return Ok(()) };
        if scope.is_some_and(|scope| scopes.iter().any(|own| own == scope)) {
            return Ok(());
        }
        let (name, own) = (&key.entry.name, scopes.join(", "));
        let detail = format_args!("the key of {name} is for the scopes {own} alone: name one");
        Err(ApiError::new(Reason::Forbidden, detail))
    }

    /// Takes Ids from the key's quota, if it has one.
    pub(crate) fn take(&self, count: u32) -> Result<Option<Left>, ApiError> {
        self.quota().map(|quota| quota.take(count)).transpose()
    }

    pub(crate) fn quota(&self) -> Option<&Quota> {
        match self {
            Self::Key(key) => key.quota.as_deref(),
            Self::Anybody => None,
        }
    }

    /// The key's quota with nothing left, if it has one.
    pub(crate) fn used_up(&self) -> Option<Left> {
        let per_second = self.quota()?.per_second().get();
        Some(Left { per_second, remaining: 0 })
    }

    /// Whether single Ids need no look at all.
    pub(crate) fn is_free(&self) -> bool {
        match self {
            Self::Anybody => true,
            Self::Key(key) => {
                key.entry.roles.contains(&Role::Ids)
                    && key.entry.scopes.is_none()
                    && key.quota.is_none()
                    && !key.expires()
            }
        }
    }

    /// The public id of the key, for the log.
    pub(crate) fn id(&self) -> &str {
        match self {
            Self::Anybody => "none",
            Self::Key(key) => &key.entry.id,
        }
    }

    /// Whose it is, for the log.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Anybody => "anybody",
            Self::Key(key) => &key.entry.name,
        }
    }
}
