//! The session of a connection: whose it is.

use std::sync::Arc;
use std::time::Duration;

use frazil::coord::internal::time::boot_time;
use frazil_wire::ApiError;

use super::frame::FrameLimits;
use crate::net::listener::Remote;
use crate::policy::access::{Authenticator, Caller, Permission};

/// What a connection is called and whose it is.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) remote: Arc<Remote>,
    pub(super) name: Vec<u8>,
    /// None before a key was shown, where one is needed.
    caller: Option<Arc<Caller>>,
    /// Since when nobody has shown a key that is needed.
    stranger_since: Option<Duration>,
}

impl Session {
    pub(super) fn new(authenticator: &Authenticator, remote: Remote) -> Self {
        let remote = Arc::new(remote);
        let mut session = Self { remote, name: Vec::new(), caller: None, stranger_since: None };
        session.reset(authenticator);
        session
    }

    /// As it was at the beginning.
    pub(super) fn reset(&mut self, authenticator: &Authenticator) {
        self.name.clear();
        self.become_first(authenticator);
    }

    /// Sets the caller before a key is shown: the one that the certificate stands for, if there is one.
    fn become_first(&mut self, authenticator: &Authenticator) {
        let caller = match authenticator.keys().is_none() {
            true => Some(Caller::Anybody),
            // What is wrong with it is heard by the commands that need a key.
            false => authenticator.by_certificate(&self.remote),
        };
        self.become_of(caller);
    }

    /// Shows a key. Whoever does so with a wrong one stays who they were.
    pub(super) fn log_in(
        &mut self,
        authenticator: &Authenticator,
        user: Option<&[u8]>,
        key: &[u8],
    ) -> Result<(), ApiError> {
        let key = std::str::from_utf8(key).unwrap_or_default();
        let caller = authenticator.admit(&self.remote, Some(key), Permission::AnyKey)?;
        user.map_or(Ok(()), |user| caller.check_user(user))?;
        self.become_of(Some(caller));
        Ok(())
    }

    /// Looks again at the key: it may have ended.
    pub(super) fn renew(&mut self, authenticator: &Authenticator) {
        if let Some(caller) = &mut self.caller
            && authenticator.renew(Arc::make_mut(caller)).is_err()
        {
            self.become_first(authenticator);
        }
    }

    /// Whether whoever it is may do what needs this.
    pub(super) fn check(
        &mut self,
        authenticator: &Authenticator,
        permission: Permission,
    ) -> Result<(), ApiError> {
        if permission == Permission::Nothing {
            return Ok(());
        }
        let caller = self.caller(authenticator, 1)?;
        caller.check(permission, 1)
    }

    /// The caller, for so many commands.
    pub(super) fn caller(
        &mut self,
        authenticator: &Authenticator,
        commands: u64,
    ) -> Result<&Arc<Caller>, ApiError> {
        // A certificate may stand for a key that was not known before.
        if self.caller.is_none() && self.remote.certificate.is_some() {
            self.become_of(authenticator.admit_by_certificate(&self.remote, commands)?);
        }
        let caller = self.caller.as_ref();
        caller.ok_or_else(|| authenticator.without_key("send a key: AUTH KEY", commands))
    }

    /// How long the client may still take to show a key; `None` if it has, or needs none.
    pub(super) fn authentication_left(&self, limit: Duration) -> Option<Duration> {
        let since = self.stranger_since?;
        Some((since + limit).saturating_sub(boot_time()))
    }

    /// What a command may have.
    pub(super) fn most(&self, bytes: usize) -> FrameLimits {
        let most = FrameLimits::bytes(bytes);
        if self.caller.is_none() { most.of_unauthenticated() } else { most }
    }

    fn become_of(&mut self, caller: Option<Caller>) {
        self.stranger_since = match &caller {
            None => self.stranger_since.or_else(|| Some(boot_time())),
            Some(_) => None,
        };
        self.caller = caller.map(Arc::new);
    }
}
