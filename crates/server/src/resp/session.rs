//! Who a connection is of.

use frazil_wire::{ApiError, Reason};

use crate::access::{Caller, Door, Gate, Need};

/// What a connection is called and whose it is.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) number: u64,
    pub(super) name: Vec<u8>,
    /// None before a key was shown, where one is needed.
    caller: Option<Caller>,
    /// Whether single Ids are given without a look at anything.
    is_free: bool,
}

impl Session {
    pub(super) fn new(gate: &Gate, number: u64) -> Self {
        let mut session = Self { number, name: Vec::new(), caller: None, is_free: false };
        session.reset(gate);
        session
    }

    /// As it was at the beginning.
    pub(super) fn reset(&mut self, gate: &Gate) {
        self.name.clear();
        self.become_of(gate.keys().is_none().then_some(Caller::Anybody));
    }

    /// Shows a key. Whoever does so with a wrong one stays who they were.
    pub(super) fn log_in(
        &mut self,
        gate: &Gate,
        user: Option<&[u8]>,
        key: &[u8],
    ) -> Result<(), ApiError> {
        let key = std::str::from_utf8(key).unwrap_or_default();
        let caller = gate.admit(Some(key), Need::AnyKey, Door::Front)?;
        let is_own = |user: &[u8]| user == b"default" || user == caller.name().as_bytes();
        if !user.is_none_or(is_own) {
            let detail = "the user must be default, or the name of the key";
            return Err(ApiError::new(Reason::Unauthenticated, detail));
        }
        self.become_of(Some(caller));
        Ok(())
    }

    /// Looks again at the key: it may have ended.
    pub(super) fn renew(&mut self, gate: &Gate) {
        if let Some(caller @ Caller::Key(_)) = &mut self.caller {
            let is_good = gate.renew(caller).is_ok();
            let caller = self.caller.take().filter(|_| is_good);
            self.become_of(caller);
        }
    }

    /// Whose it is, if that one may do what needs this.
    pub(super) fn admit(&self, need: Need) -> Result<&Caller, ApiError> {
        match &self.caller {
            Some(caller) => caller.check(need).map(|()| caller),
            None if need == Need::Nothing => Ok(&Caller::Anybody),
            None => Err(ApiError::new(Reason::Unauthenticated, "send a key: AUTH KEY")),
        }
    }

    pub(super) const fn is_free(&self) -> bool {
        self.is_free
    }

    fn become_of(&mut self, caller: Option<Caller>) {
        self.is_free = caller.as_ref().is_some_and(Caller::is_free);
        self.caller = caller;
    }
}
