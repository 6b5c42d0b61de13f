//! The text of a key.

use std::fmt;
use std::io;

use ring::digest::{SHA256, SHA256_OUTPUT_LEN, digest};
use ring::rand::{SecureRandom, SystemRandom};

/// Bytes of a hash.
pub(super) const HASH_BYTES: usize = SHA256_OUTPUT_LEN;
/// What every key begins with, so that scanners for secrets recognise one.
const PREFIX: &str = "frz_";
/// Bytes of a key's public id: enough to tell keys apart, short enough to read out.
const ID_BYTES: usize = 4;
/// Bytes of a key's secret: nobody guesses them.
const SECRET_BYTES: usize = 32;

/// A key that was just made: the only moment at which its text is known.
pub struct NewKey {
    text: String,
}

impl NewKey {
    /// A new one from the operating system's random bits.
    ///
    /// # Errors
    /// If there are none.
    pub fn mint() -> io::Result<Self> {
        let (mut id, mut secret) = ([0; ID_BYTES], [0; SECRET_BYTES]);
        for bytes in [id.as_mut_slice(), secret.as_mut_slice()] {
            SystemRandom::new().fill(bytes).map_err(|_| io::Error::other("no random bits"))?;
        }
        Ok(Self { text: format!("{PREFIX}{}_{}", hex(&id), hex(&secret)) })
    }

    /// What its user sends.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Its public id.
    #[must_use]
    pub fn id(&self) -> &str {
        id_of(&self.text).unwrap_or_default()
    }

    /// What the server keeps of it.
    #[must_use]
    pub fn sha256(&self) -> String {
        hex(&hash(&self.text))
    }
}

impl fmt::Debug for NewKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NewKey({}, ***)", self.id())
    }
}

/// The public id in a key's text.
pub(super) fn id_of(text: &str) -> Option<&str> {
    let (id, _) = text.strip_prefix(PREFIX)?.split_once('_')?;
    Some(id)
}

/// The public id for the log; nothing that could be a part of a secret, whatever was shown.
pub(crate) fn public_id(text: &str) -> &str {
    let is_id = |id: &&str| id.len() == 2 * ID_BYTES && id.bytes().all(|b| b.is_ascii_hexdigit());
    id_of(text).filter(is_id).unwrap_or("none")
}

pub(super) fn hash(text: &str) -> [u8; HASH_BYTES] {
    let digest = digest(&SHA256, text.as_bytes());
    let mut bytes = [0; HASH_BYTES];
    bytes.copy_from_slice(digest.as_ref());
    bytes
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_an_id_and_256_random_bits_and_is_not_shown() {
        let (one, other) = (NewKey::mint().unwrap(), NewKey::mint().unwrap());
        assert_ne!(one.text(), other.text());
        assert_eq!(one.text().len(), 4 + 8 + 1 + 64);
        assert_eq!(id_of(one.text()), Some(one.id()));
        assert!(!format!("{one:?}").contains(&one.text()[13..]));
        // The hash of "abc", as FIPS 180-4 gives it.
        assert!(hex(&hash("abc")).starts_with("ba7816bf8f01cfea414140de5dae2223"));
    }
}
