//! Ways to break the generator on purpose, so that tests can be seen to notice.
//!
//! A build with the feature `mutants` misbehaves in the way that `FRAZIL_MUTANT` names, and behaves
//! well without that variable. Any other build has nothing of it: `is` is `false` to the compiler.

#[cfg(feature = "mutants")]
mod chosen;
#[cfg(not(feature = "mutants"))]
#[path = "mutant/none.rs"]
mod chosen;

#[cfg(all(feature = "mutants", not(debug_assertions)))]
compile_error!("the feature `mutants` breaks Frazil on purpose: no release build can have it");

pub(crate) use self::chosen::is;
#[cfg(feature = "mutants")]
pub use self::chosen::{NAMES, VARIABLE};

/// One broken rule each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mutant {
    /// `no-last-tick`: the generator follows a clock that stepped back. Breaks "a ticket never goes
    /// down": times that were used are used again.
    NoLastTick,
    /// `sequence-overflow`: a sequence that is used up begins again in the same tick. Breaks "the
    /// first ticket is the one after the last": Ids of that tick repeat.
    SequenceOverflow,
}
