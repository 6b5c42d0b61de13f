//! A key, which is never printed.

use std::fmt;
use std::path::Path;

use hyper::header::HeaderValue;

use crate::error::Error;

/// A key is a line, not a disk image: what is longer is the wrong file.
const KEY_BYTES_MAX: u64 = 4096;

/// The key that is shown to servers.
#[derive(Clone)]
pub(crate) struct Key(HeaderValue);

impl Key {
    pub(crate) fn new(text: &str) -> Result<Self, Error> {
        let key = text.trim();
        if key.is_empty() {
            return Err(Error::invalid(
                "the key is empty: give the one that `frazil key new` printed",
            ));
        }
        let header = HeaderValue::from_str(&format!("Bearer {key}"));
        let mut header =
            header.map_err(|_| Error::invalid("the key has characters that no key has"))?;
        header.set_sensitive(true);
        Ok(Self(header))
    }

    pub(crate) fn read(path: &Path) -> Result<Self, Error> {
        let bad = |why: &dyn fmt::Display| {
            Error::invalid(format_args!("the key file {} {why}", path.display()))
        };
        let length = std::fs::metadata(path)
            .map_err(|error| bad(&format_args!("cannot be read: {error}")))?
            .len();
        if length > KEY_BYTES_MAX {
            return Err(bad(&"is no key: write the key alone into it, as one line"));
        }
        let text = std::fs::read_to_string(path)
            .map_err(|error| bad(&format_args!("cannot be read: {error}")))?;
        Self::new(&text).map_err(|error| bad(&format_args!("is of no use: {error}")))
    }

    /// As the header `Authorization` has it.
    pub(crate) const fn header(&self) -> &HeaderValue {
        &self.0
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(redacted)")
    }
}
