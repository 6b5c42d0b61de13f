//! Ways to break the answers on purpose, so that tests can be seen to notice.
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

#[cfg(feature = "mutants")]
pub use self::chosen::NAMES;
pub(crate) use self::chosen::is;

/// One broken rule each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mutant {
    /// `json-number`: Ids in JSON are numbers. Breaks "Ids are strings": JavaScript rounds them, and
    /// what it reads repeats.
    JsonNumber,
}
