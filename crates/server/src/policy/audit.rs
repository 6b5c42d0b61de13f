//! The security log: who was refused what, and what administrators did.
//!
//! All of it has one target. The log writes every line of it, except that refusals which anybody can
//! cause without knowing a key are counted when they repeat: see the rules of the log.

use std::fmt;

use frazil_wire::ApiError;

use crate::net::remote::Remote;
use crate::policy::keys::Key;

/// What a refusal was about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RefusalKind {
    /// A key that is wrong or over.
    Key,
    /// A certificate whose key is over, or that is of several.
    Certificate,
    /// The role that the key does not have.
    Role,
    /// The scope that the key is not for.
    Scope,
    /// The user that a RESP client named beside its key.
    User,
    /// A web page of another origin.
    Origin,
}

impl RefusalKind {
    const fn word(self) -> &'static str {
        match self {
            Self::Key => "key",
            Self::Certificate => "certificate",
            Self::Role => "role",
            Self::Scope => "scope",
            Self::User => "user",
            Self::Origin => "origin",
        }
    }
}

/// The owner of a key that was shown.
#[derive(Clone, Copy, Debug)]
pub(crate) enum KeyOwner<'a> {
    Known(&'a Key),
    /// Nobody's; perhaps it has a public id, as keys that were revoked do.
    Unknown(&'a str),
}

impl<'a> KeyOwner<'a> {
    /// What no key is called: names are words.
    const NOBODY: &'static str = "?";

    fn name_and_id(self) -> (&'a str, &'a str) {
        match self {
            Self::Known(key) => (&key.entry.name, &key.entry.id),
            Self::Unknown(id) => (Self::NOBODY, id),
        }
    }
}

/// Logs a refusal.
pub(crate) fn refused(remote: &Remote, whose: KeyOwner<'_>, what: RefusalKind, error: &ApiError) {
    let (by, key) = whose.name_and_id();
    tracing::warn!(
        target: "frazil_server::audit",
        refused = what.word(),
        peer = %remote.address,
        protocol = remote.listener,
        connection = remote.connection,
        by,
        key,
        request = %Request(remote),
        "{}", error.detail
    );
}

/// Logs that no more keys of an address are looked at for a while.
pub(crate) fn paused(remote: &Remote, pause: std::time::Duration) {
    tracing::warn!(
        target: "frazil_server::audit",
        peer = %remote.address,
        protocol = remote.listener,
        seconds = pause.as_secs(),
        "too many wrong API keys from one address: its keys are refused for a while"
    );
}

/// Logs what an administrator told the node to do, and what came of it.
pub(crate) fn log_act(remote: &Remote, key: Option<&Key>, verb: &str, outcome: &dyn fmt::Display) {
    tracing::info!(
        target: "frazil_server::audit",
        by = key.map_or("anybody", |key| key.entry.name.as_str()),
        key = key.map_or("none", |key| key.entry.id.as_str()),
        peer = %remote.address,
        request = %Request(remote),
        verb,
        %outcome,
        "the node was told to {verb}"
    );
}

/// The name of a remote's request, or `none`.
struct Request<'a>(&'a Remote);

impl fmt::Display for Request<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0.request {
            Some(request) => request.fmt(f),
            None => f.write_str("none"),
        }
    }
}
