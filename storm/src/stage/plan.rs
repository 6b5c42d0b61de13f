//! What is to be played, with what, and how much of it.

use std::path::PathBuf;

use crate::store::Kind;

/// What is to be played.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) scenario: &'static str,
    pub(crate) store: Kind,
    pub(crate) seed: u64,
    /// 1 for as many cycles as the experiment asks for.
    pub(crate) scale: f64,
    pub(crate) frazil: PathBuf,
    pub(crate) mutant: Option<String>,
    /// Where logs go.
    pub(crate) directory: PathBuf,
}

impl Plan {
    /// How many cycles to play of those that the experiment asks for; at least one.
    pub(crate) fn cycles(&self, full: u32) -> u32 {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a small count"
        )]
        let cycles = (f64::from(full) * self.scale).round() as u32;
        cycles.max(1)
    }
}
