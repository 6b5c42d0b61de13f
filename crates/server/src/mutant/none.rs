//! No mutants.

use super::Mutant;

/// Never.
pub(crate) const fn is(_: Mutant) -> bool {
    false
}
