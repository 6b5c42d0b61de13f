//! Ways to break the coordination on purpose, so that tests can be seen to notice.
//!
//! A build with the feature `mutants` misbehaves in the way that `FRAZIL_MUTANT` names, and behaves
//! well without that variable. Any other build has nothing of it: `is` is `false` to the compiler.
//!
//! Where a mutant breaks what a store does, it breaks it on one kind of store; each says which.
//! The model in `crates/frazil/tests` has variants of the same meaning, see `model/mutants.rs` there.

#[cfg(feature = "mutants")]
mod chosen;
#[cfg(not(feature = "mutants"))]
#[path = "mutant/none.rs"]
mod chosen;
#[cfg(feature = "mutants")]
mod scripts;

#[cfg(all(feature = "mutants", not(debug_assertions)))]
compile_error!("the feature `mutants` breaks Frazil on purpose: no release build can have it");

#[cfg(feature = "mutants")]
pub use self::chosen::{NAMES, VARIABLE};
pub use self::chosen::{is, rewrite};

/// One broken rule each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mutant {
    /// `no-horizon`, any store: a lease has a time to live and nothing else. A holder issues while it
    /// believes in its lease, and its successor starts at its own clock. Breaks "the holder stamps
    /// only times up to a horizon that the store has acknowledged".
    NoHorizon,
    /// `horizon-in-lease`, Redis: the horizon dies with presence. Breaks "a new tenure starts above
    /// the horizon of all before it": after a lapse it starts at the clock.
    HorizonInLease,
    /// `start-at-clock`, any store: a new holder ignores its floor. Breaks the same rule.
    StartAtClock,
    /// `extend-without-token`, Redis: a renewal compares nothing. Breaks "a holder is known by token
    /// and nonce": one that was superseded raises the horizon of its successor and goes on.
    ExtendWithoutToken,
    /// `raise-on-send`, any store: a window is used when it was asked for. Breaks "a horizon that the
    /// store has acknowledged".
    RaiseOnSend,
    /// `reacquire-by-name`, Redis: who has the name of a holder gets its tenure. Breaks "never by
    /// name": two of one name issue the same.
    ReacquireByName,
    /// `release-before-close`, any store: the worker is released while its lane still issues. Breaks
    /// "a release closes the generator first".
    ReleaseBeforeClose,
    /// `resume-after-release`, any store: the lane is opened again after its release. Breaks "once it
    /// was sent the tenure is over".
    ResumeAfterRelease,
    /// `take-if-free`, etcd: a claim takes whatever is free when it arrives. Breaks "an acquisition
    /// names the version that was read": a late one comes with an old floor.
    TakeIfFree,
    /// `forget-quarantine`, any store: a namespace that is gone is taken for new. Breaks "a record
    /// that should exist and does not is lost": those who still issue are not waited for.
    ForgetQuarantine,
    /// `stale-leader`, any store but files: whether one leads is remembered, not looked at. Breaks
    /// "time alone ends a term": one that is cut off goes on beside the next leader.
    StaleLeader,
    /// `unfenced-tokens`, Redis: every tenure of a slot has the same token. Breaks "tokens rise":
    /// late writes of a former holder pass the fence.
    UnfencedTokens,
}
