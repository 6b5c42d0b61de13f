//! A build without mutants.

use crate::output::Failure;

/// What `--version` says.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Nothing to check: the variable means nothing.
#[expect(clippy::unnecessary_wraps, reason = "as in a build with mutants")]
pub(crate) const fn check() -> Result<(), Failure> {
    Ok(())
}

/// Nothing to say.
pub(crate) const fn warning() -> Option<String> {
    None
}
