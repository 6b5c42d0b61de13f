//! The meta record of a new namespace. This one function creates it and creates it anew, whoever
//! comes first. Workers, leaders and scopes share it, and with it one rule of quarantine.

use crate::nonce::Nonce;
use crate::record::{FORMAT, Meta, Token, UnixMs};
use crate::rules::{RUN_AHEAD_MS, SILENCE_MS};
use crate::url::Scheme;

/// Added to whatever is waited for: clocks differ.
const SKEW_MS: u64 = 2000;

/// When a namespace that does not exist yet is used for the first time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FirstUse {
    /// At once: it is known to be new.
    AtOnce,
    /// At once, but a little ahead of time: it is known to be new, or its directory was replaced.
    Ahead,
    /// After some seconds: it may have been forgotten, and its live holders then say so.
    AfterSilence,
    /// After a window: it may have been forgotten, and nobody would say so.
    AfterWindow,
}

impl FirstUse {
    /// What is known of a namespace that is missing from a store of this kind.
    #[must_use]
    pub const fn of(scheme: Scheme) -> Self {
        match scheme {
            Scheme::Memory => Self::AtOnce,
            Scheme::File => Self::Ahead,
            Scheme::Static => Self::AfterWindow,
            _ => Self::AfterSilence,
        }
    }
}

/// What is known when a namespace is created.
#[derive(Clone, Copy, Debug)]
pub struct NewNamespace<'a> {
    /// What times and numbers mean, and the workers; `None` where nobody leases workers yet.
    pub layout: Option<(&'a str, (u32, u32))>,
    /// No horizon is further from now than this, in milliseconds.
    pub window_ms: u64,
    /// When it is used.
    pub first_use: FirstUse,
    /// Whether it was there before, for sure.
    pub was_there: bool,
    /// The horizon up to which whoever creates it may have used times in the one before.
    pub owed: UnixMs,
    /// Now, by a clock that was judged.
    pub now: UnixMs,
    /// Minted for it.
    pub incarnation: Nonce,
}

impl NewNamespace<'_> {
    /// The meta record to be written.
    #[must_use]
    pub fn meta(&self) -> Meta {
        let (layout, (first_worker, last_worker)) = self.layout.unwrap_or_default();
        Meta {
            format: FORMAT,
            incarnation: self.incarnation,
            layout: layout.to_owned(),
            first_worker,
            last_worker,
            window_ms: self.window_ms,
            quarantine: self.quarantine().max(self.owed),
            token_floor: Token::default(),
            created: self.now,
        }
    }

    /// The time above which everybody starts.
    fn quarantine(&self) -> UnixMs {
        // What was promised before is unknown, but no more than a window from now.
        let forgotten = self.now.saturating_add(self.window_ms + SKEW_MS);
        match self.first_use {
            _ if self.was_there => forgotten,
            FirstUse::AtOnce => 0,
            // Others who use a directory at this path notice before they get so far.
            FirstUse::Ahead => self.now.saturating_add(RUN_AHEAD_MS),
            FirstUse::AfterSilence => self.now.saturating_add(SILENCE_MS),
            FirstUse::AfterWindow => forgotten,
        }
    }
}
