//! Where a user's own state is kept.

use std::env;
use std::path::PathBuf;

/// The directory for state that outlives a process: `$FRAZIL_STATE_DIR`, else
/// `$XDG_STATE_HOME/frazil`, else `~/.local/state/frazil`. `None` if none of them is set.
#[must_use]
pub fn state_directory() -> Option<PathBuf> {
    let set = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set("FRAZIL_STATE_DIR")
        .or_else(|| set("XDG_STATE_HOME").map(|state| state.join("frazil")))
        .or_else(|| set("HOME").map(|home| home.join(".local/state/frazil")))
}
