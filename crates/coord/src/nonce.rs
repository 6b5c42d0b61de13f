//! The mark by which a holder is recognised.

use std::fmt;
use std::io;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::error::write_causes;

/// 128 random bits, minted for each acquisition. Names of hosts and process ids repeat in
/// containers, and a forked process copies a generator in memory; the operating system's bits do
/// neither.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Nonce(u128);

/// The text is not 32 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NonceError;

/// The operating system gives no random bits.
#[derive(Clone, Debug)]
pub struct NoRandomBits(Arc<io::Error>);

impl Nonce {
    /// A new one from the operating system.
    ///
    /// # Errors
    /// If the operating system has no random bits to give.
    pub fn mint() -> io::Result<Self> {
        let mut bits = [0; 16];
        getrandom::fill(&mut bits).map_err(io::Error::other)?;
        Ok(Self(u128::from_le_bytes(bits)))
    }

    /// A known one, for tests and models.
    #[must_use]
    pub const fn from_bits(bits: u128) -> Self {
        Self(bits)
    }

    /// Its bits.
    #[must_use]
    pub const fn bits(self) -> u128 {
        self.0
    }
}

impl fmt::Display for Nonce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for Nonce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Nonce({self})")
    }
}

impl FromStr for Nonce {
    type Err = NonceError;

    fn from_str(text: &str) -> Result<Self, NonceError> {
        let is_hex = text.len() == 32 && text.bytes().all(|b| b.is_ascii_hexdigit());
        match u128::from_str_radix(text, 16) {
            Ok(bits) if is_hex => Ok(Self(bits)),
            _ => Err(NonceError),
        }
    }
}

impl TryFrom<String> for Nonce {
    type Error = NonceError;

    fn try_from(text: String) -> Result<Self, NonceError> {
        text.parse()
    }
}

impl From<Nonce> for String {
    fn from(nonce: Nonce) -> Self {
        nonce.to_string()
    }
}

impl fmt::Display for NonceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a nonce is 32 hexadecimal digits")
    }
}

impl std::error::Error for NonceError {}

impl From<io::Error> for NoRandomBits {
    fn from(error: io::Error) -> Self {
        Self(Arc::new(error))
    }
}

impl fmt::Display for NoRandomBits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the operating system gives no random bits")?;
        if f.alternate() { write_causes(f, self) } else { Ok(()) }
    }
}

impl std::error::Error for NoRandomBits {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&*self.0)
    }
}

impl PartialEq for NoRandomBits {
    fn eq(&self, other: &Self) -> bool {
        self.0.to_string() == other.0.to_string()
    }
}

impl Eq for NoRandomBits {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_nonce_are_one_to_one() {
        let nonce = Nonce::from_bits(0xabc);
        assert_eq!(nonce.to_string().parse(), Ok(nonce));
        for bad in ["", "abc", "+0000000000000000000000000000abc", &"g".repeat(32)] {
            assert_eq!(bad.parse::<Nonce>(), Err(NonceError), "{bad:?}");
        }
    }
}
