//! The directory of a user's own state.

use std::env;
use std::path::PathBuf;

use frazil_coord::{Scheme, StoreUrl};

/// The directory for state that outlives a process: `$FRAZIL_STATE_DIR`, else
/// `$XDG_STATE_HOME/frazil`, else `~/.local/state/frazil`. `None` if none of them is set.
#[must_use]
pub fn state_directory() -> Option<PathBuf> {
    let set = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set("FRAZIL_STATE_DIR")
        .or_else(|| set("XDG_STATE_HOME").map(|state| state.join("frazil")))
        .or_else(|| set("HOME").map(|home| home.join(".local/state/frazil")))
}

/// The store to use: the one named, else the file store under the state directory. A fixed worker
/// without a directory keeps its horizon there too. `None` if there is no state directory.
#[must_use]
pub fn store_or_default(named: Option<StoreUrl>) -> Option<StoreUrl> {
    let state = || state_directory()?.to_str().map(str::to_owned);
    let mut url = match named {
        Some(url) => url,
        None => StoreUrl::file(format!("{}/store", state()?)),
    };
    if url.scheme == Scheme::Static && url.option("state").is_none() {
        url.options.insert("state".into(), state()?);
    }
    Some(url)
}
