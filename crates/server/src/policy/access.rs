//! Authentication: what each request needs, and who is let in.

mod caller;

use std::sync::Arc;

use arc_swap::{ArcSwapOption, Guard};
use frazil_wire::{ApiError, Reason};

pub(crate) use self::caller::Caller;
use crate::metrics::{KeyCounts, KeyMetrics};
use crate::net::remote::Remote;
use crate::node::open;
use crate::policy::attempts::Attempts;
use crate::policy::audit::{self, KeyOwner, RefusalKind};
use crate::policy::keys::{Denied, Key, Keyring, public_id};

/// What a request needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Permission {
    /// Nothing: probes, descriptions, and what keys are shown with.
    Nothing,
    /// A key, whatever its roles.
    AnyKey,
    /// The role `ids`.
    Ids,
    /// The role `peer`: to forward a request for IDs, as nodes do.
    Peer,
    /// The role `read`, which `admin` has too.
    Read,
    /// The role `admin`.
    Admin,
}

/// Whom a listener is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListenerKind {
    /// For everybody.
    Public,
    /// For administrators.
    Admin,
}

/// Checks keys, as long as there are any.
#[derive(Debug)]
pub(crate) struct Authenticator {
    keys: ArcSwapOption<Keyring>,
    open_metrics: bool,
    /// Whether administrators have a listener of their own.
    is_admin_apart: bool,
    attempts: Attempts,
    metrics: KeyMetrics,
}

impl Authenticator {
    /// Lets as many wrong keys of an address pass within a minute as said.
    pub(crate) fn new(
        keys: Option<Keyring>,
        open_metrics: bool,
        is_admin_apart: bool,
        max_failed_keys: u32,
    ) -> Self {
        let metrics = KeyMetrics::new();
        let keys = keys.inspect(|keys| keys.count_in(&metrics));
        let keys = ArcSwapOption::from(keys.map(Arc::new));
        let attempts = Attempts::new(max_failed_keys);
        Self { keys, open_metrics, is_admin_apart, attempts, metrics }
    }

    /// What is counted by key.
    pub(crate) const fn metrics(&self) -> &KeyMetrics {
        &self.metrics
    }

    /// The keys in force; none if nobody needs one.
    pub(crate) fn keys(&self) -> Guard<Option<Arc<Keyring>>> {
        self.keys.load()
    }

    /// Puts other keys in force.
    pub(crate) fn replace(&self, keys: Keyring) {
        keys.count_in(&self.metrics);
        self.keys.store(Some(Arc::new(keys)));
    }

    pub(crate) const fn has_open_metrics(&self) -> bool {
        self.open_metrics
    }

    /// Whether this kind of listener serves administrators.
    pub(crate) fn serves_admin(&self, listener_kind: ListenerKind) -> bool {
        listener_kind == ListenerKind::Admin || !self.is_admin_apart
    }

    /// Whether a connection has shown neither a key nor a certificate, and would have to. Such a client
    /// is answered once: what a connection holds between requests is for those who may ask.
    pub(crate) fn is_unauthenticated(&self, remote: &Remote) -> bool {
        // A proxy speaks for many.
        let is_known = remote.is_proxy || remote.certificate.is_some() || remote.has_shown_key();
        !is_known && self.keys.load().is_some()
    }

    /// Looks again at a key that was shown before: it may have ended, or changed.
    ///
    /// # Errors
    /// If it is none any more.
    pub(crate) fn renew(&self, caller: &mut Caller) -> Result<(), ApiError> {
        let (Caller::Key(holder), keys) = (caller, self.keys.load()) else { return Ok(()) };
        let Some(keys) = keys.as_deref() else { return Ok(()) };
        let now = holder.renewed(keys).map_err(|why| {
            let what =
                if holder.is_certified { RefusalKind::Certificate } else { RefusalKind::Key };
            holder.refused(what, &denied(&why), 1)
        })?;
        if !Arc::ptr_eq(now, &holder.key) {
            holder.key = now.clone();
        }
        Ok(())
    }

    /// Lets in who shows a key that gives what is needed, or has a certificate that stands for one.
    /// What is refused is logged and counted here, for every protocol.
    ///
    /// # Errors
    /// What is missing.
    pub(crate) fn admit(
        &self,
        remote: &Remote,
        shown: Option<&str>,
        permission: Permission,
    ) -> Result<Caller, ApiError> {
        if permission == Permission::Nothing {
            return Ok(Caller::Anybody);
        }
        let keys = self.keys.load();
        let Some(keys) = keys.as_deref() else { return without_keys(remote, permission) };
        let caller = match shown {
            Some(text) => self.shown(keys, remote, text)?,
            None => self.certified(keys, remote, 1)?.ok_or_else(|| {
                let detail = "send a key: Authorization: Bearer KEY";
                self.without_key(detail, 1)
            })?,
        };
        caller.check(permission, 1).map(|()| caller)
    }

    /// The caller that a connection's certificate alone stands for: nobody where it has none, or one that
    /// stands for no key.
    pub(crate) fn by_certificate(&self, remote: &Remote) -> Option<Caller> {
        // Nothing is refused yet: requests are, and they are counted.
        self.admit_by_certificate(remote, 0).ok().flatten()
    }

    /// The same for so many requests that show no key.
    ///
    /// # Errors
    /// Why that key opens nothing; or that the keys were not read yet.
    pub(crate) fn admit_by_certificate(
        &self,
        remote: &Remote,
        requests: u64,
    ) -> Result<Option<Caller>, ApiError> {
        let keys = self.keys.load();
        keys.as_deref().map_or(Ok(None), |keys| self.certified(keys, remote, requests))
    }

    /// What somebody hears who has shown no key where one is needed, for so many requests.
    pub(crate) fn without_key(&self, detail: &str, requests: u64) -> ApiError {
        self.metrics.nobody().refused(Reason::Unauthenticated, requests);
        ApiError::new(Reason::Unauthenticated, detail)
    }

    fn shown(&self, keys: &Keyring, remote: &Remote, text: &str) -> Result<Caller, ApiError> {
        // A proxy that does not say for whom it asks is many clients; and whoever is in goes on.
        if !remote.is_proxy && !remote.has_shown_key() {
            let checked = self.attempts.check(remote.address);
            checked.inspect_err(|error| self.metrics.nobody().refused(error.reason, 1))?;
        }
        let found = keys.find(text);
        remote.note_key(found.is_ok());
        let why = match found {
            Ok(key) => return Ok(Caller::new(key, remote, false)),
            Err(why) => why,
        };
        let (error, meant) = (denied(&why), keys.meant(text));
        let whose = meant.map_or(KeyOwner::Unknown(public_id(text)), |key| KeyOwner::Known(key));
        audit::refused(remote, whose, RefusalKind::Key, &error);
        self.counts(meant).refused(error.reason, 1);
        // Whoever has a key that is over does not guess.
        if why == Denied::Unknown
            && !remote.is_proxy
            && let Some(pause) = self.attempts.failed(remote.address)
        {
            audit::paused(remote, pause);
        }
        Err(error)
    }

    fn certified(
        &self,
        keys: &Keyring,
        remote: &Remote,
        requests: u64,
    ) -> Result<Option<Caller>, ApiError> {
        let Some(certificate) = &remote.certificate else { return Ok(None) };
        if keys.is_unread() {
            return Err(denied(&Denied::Unread));
        }
        match keys.certified(certificate) {
            Ok(key) => Ok(key.map(|key| Caller::new(key, remote, true))),
            Err((key, why)) => {
                let error = denied(&why);
                audit::refused(remote, KeyOwner::Known(key), RefusalKind::Certificate, &error);
                self.counts(Some(key)).refused(error.reason, requests);
                Err(error)
            }
        }
    }

    fn counts<'a>(&'a self, key: Option<&'a Arc<Key>>) -> &'a KeyCounts {
        key.and_then(|key| key.counts.get()).unwrap_or_else(|| self.metrics.nobody())
    }
}

/// Without keys everybody may do everything, but administer only where administrators listen.
fn without_keys(remote: &Remote, permission: Permission) -> Result<Caller, ApiError> {
    if permission == Permission::Admin && remote.listener_kind == ListenerKind::Public {
        let detail = "this needs the role admin: start the server with --keys, or with a listener \
                      for administrators, --admin";
        let error = ApiError::new(Reason::Forbidden, detail);
        audit::refused(remote, KeyOwner::Unknown("none"), RefusalKind::Role, &error);
        return Err(error);
    }
    Ok(Caller::Anybody)
}

/// The key in an `Authorization` header.
pub(crate) fn bearer(header: &[u8]) -> Option<&str> {
    let (scheme, key) = std::str::from_utf8(header).ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(key.trim_matches(' '))
}

/// What somebody hears whose key is none.
pub(crate) fn denied(why: &Denied) -> ApiError {
    let detail = match why {
        Denied::Unread => {
            let detail = "the keys were not read from the store yet";
            return ApiError::new(Reason::StoreUnavailable, detail).retry_after(open::RETRY);
        }
        Denied::Unknown => "the key is unknown: it was mistyped, revoked or never there".to_owned(),
        Denied::Expired(when) => format!("the key expired at {when}"),
        Denied::Several(one, other) => {
            format!("the certificate stands for both {one} and {other}: send a key")
        }
    };
    ApiError::new(Reason::Unauthenticated, detail)
}
