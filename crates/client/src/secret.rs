//! A key, which is never printed, and the file that it may be read from again.

use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arc_swap::ArcSwap;
use hyper::header::HeaderValue;

use crate::error::Error;

/// A key is a line, not a disk image: what is longer is the wrong file.
const KEY_BYTES_MAX: u64 = 4096;

/// The key that is shown to servers.
#[derive(Clone, PartialEq, Eq)]
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
        let bad = |why: &str| Error::invalid(format_args!("the key file {} {why}", path.display()));
        let length =
            std::fs::metadata(path).map_err(|error| bad("cannot be read").because(error))?.len();
        if length > KEY_BYTES_MAX {
            return Err(bad("is no key: write the key alone into it, as one line"));
        }
        let mut text = String::new();
        std::fs::File::open(path)
            .and_then(|file| file.take(KEY_BYTES_MAX).read_to_string(&mut text))
            .map_err(|error| bad("cannot be read").because(error))?;
        Self::new(&text).map_err(|error| bad("is of no use").because(error))
    }

    /// As the header `Authorization` has it.
    pub(crate) const fn header(&self) -> &HeaderValue {
        &self.0
    }
}

/// The key that all servers are shown. One of a file is replaced there when it is rotated.
#[derive(Debug)]
pub(crate) struct Keyring {
    current: ArcSwap<Key>,
    file: Option<PathBuf>,
}

impl Keyring {
    /// A key that stays.
    pub(crate) fn fixed(text: &str) -> Result<Self, Error> {
        Ok(Self { current: ArcSwap::from_pointee(Key::new(text)?), file: None })
    }

    /// The key of a file. What is no file, such as a pipe, has it once.
    pub(crate) fn of_file(path: &Path) -> Result<Self, Error> {
        let current = ArcSwap::from_pointee(Key::read(path)?);
        Ok(Self { current, file: path.is_file().then(|| path.to_owned()) })
    }

    pub(crate) fn current(&self) -> Arc<Key> {
        self.current.load_full()
    }

    /// Whether there is another key than the one that was refused: the file is read again, unless
    /// somebody else has just done so. A file that is of no use leaves everything as it was.
    pub(crate) fn renew(&self, refused: &Key) -> bool {
        let is_other = || *self.current() != *refused;
        is_other() || (self.reload().is_ok() && is_other())
    }

    /// Reads the file again.
    pub(crate) fn reload(&self) -> Result<(), Error> {
        if let Some(file) = &self.file {
            self.current.store(Arc::new(Key::read(file)?));
        }
        Ok(())
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(redacted)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_new_if_the_file_has_another() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("key");
        std::fs::write(&path, "one\n").unwrap();
        let ring = Keyring::of_file(&path).unwrap();
        let one = ring.current();
        assert!(!ring.renew(&one));
        std::fs::write(&path, "two\n").unwrap();
        assert!(ring.renew(&one) && *ring.current() == Key::new("two").unwrap());
        // Who was refused with the old one meanwhile need not read it.
        std::fs::remove_file(&path).unwrap();
        assert!(ring.renew(&one));
        assert!(!ring.renew(&ring.current()));
        std::fs::write(&path, " \n").unwrap();
        assert!(!ring.renew(&ring.current()) && *ring.current() == Key::new("two").unwrap());
        let fixed = Keyring::fixed("one").unwrap();
        assert!(!fixed.renew(&one));
    }
}
