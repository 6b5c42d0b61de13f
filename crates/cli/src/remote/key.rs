//! The API key: from a file or the environment, never from the command line, where all can see it.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use frazil_coord::Secret;

use crate::output::Failure;

/// Where the key is looked for when no file is named.
const KEY_VARIABLE: &str = "FRAZIL_KEY";
/// Whether that variable counts: not beside `--context`, whose server is another than the one it is for.
static IS_VARIABLE_IGNORED: AtomicBool = AtomicBool::new(false);
/// A key is a line, not a disk image: what is longer is the wrong file.
const KEY_BYTES_MAX: u64 = 4096;

/// Leaves the environment's key out for the rest of the process.
pub(crate) fn ignore_variable() {
    // Relaxed: see `read`.
    IS_VARIABLE_IGNORED.store(true, Ordering::Relaxed);
}

/// The key of a file, else of the environment, if there is one.
pub(crate) fn read(file: Option<&Path>) -> Result<Option<Secret>, Failure> {
    let Some(path) = file.filter(|path| !path.as_os_str().is_empty()) else {
        // Relaxed: set before anything is asked for.
        if IS_VARIABLE_IGNORED.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let key = std::env::var(KEY_VARIABLE).ok();
        return Ok(key.filter(|key| !key.is_empty()).map(Secret::new));
    };
    let bad = |why: String| Failure::usage(format_args!("the key file {path:?} {why}"));
    let mut text = String::new();
    File::open(path)
        .and_then(|file| file.take(KEY_BYTES_MAX + 1).read_to_string(&mut text))
        .map_err(|error| bad(format!("cannot be read: {error}")))?;
    if text.len() as u64 > KEY_BYTES_MAX {
        return Err(bad(format!("has more than {KEY_BYTES_MAX} bytes: write the key alone")));
    }
    match text.trim() {
        "" => Err(bad("is empty: write the key into it, as one line".into())),
        key => Ok(Some(Secret::new(key.to_owned()))),
    }
}

/// Refuses a key that no server can have given out, before it goes into a head.
pub(crate) fn check(key: &Secret) -> Result<(), Failure> {
    match key.reveal().bytes().all(|byte| byte.is_ascii_graphic()) {
        true => Ok(()),
        false => {
            Err(Failure::usage("the key has characters that no key has: is it the right file?"))
        }
    }
}
