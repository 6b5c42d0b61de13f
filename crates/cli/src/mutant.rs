//! A build that can be broken on purpose, see the crates' own `mutant`: says so wherever it can.

use std::env::{self, VarError};

use frazil_coord::mutant::VARIABLE;

use crate::output::Failure;

#[cfg(not(debug_assertions))]
compile_error!("the feature `mutants` breaks Frazil on purpose: no release build can have it");

/// What `--version` says.
pub(crate) const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "+mutants");

/// Refuses a name that no mutant has.
pub(crate) fn check() -> Result<(), Failure> {
    match env::var(VARIABLE) {
        Err(VarError::NotPresent) => Ok(()),
        Ok(name) if names().any(|known| known == name) => Ok(()),
        Ok(name) => Err(unknown(&name)),
        Err(VarError::NotUnicode(name)) => Err(unknown(&name.to_string_lossy())),
    }
}

/// What a server of such a build says when it starts.
pub(crate) fn warning() -> Option<String> {
    let name = env::var(VARIABLE).ok()?;
    Some(format!(
        "THIS NODE IS BROKEN ON PURPOSE: {VARIABLE}={name}. Its Ids can repeat; it is for tests of \
         tests, and nothing else"
    ))
}

fn unknown(name: &str) -> Failure {
    let known: Vec<&str> = names().collect();
    Failure::usage(format_args!(
        "{VARIABLE}={name} is no mutant. Unset it, or choose one of: {}",
        known.join(", ")
    ))
}

fn names() -> impl Iterator<Item = &'static str> {
    let all = [frazil_coord::mutant::NAMES, frazil_id::mutant::NAMES, frazil_server::mutant::NAMES];
    all.into_iter().flatten().copied()
}
