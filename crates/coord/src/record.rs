//! The records of a store: one for each slot, and one for the namespace.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::error::{ErrorKind, Reason};
use crate::nonce::Nonce;

/// The format of records and meta that this code writes, and the newest that it reads.
pub const FORMAT: u32 = 1;

/// Times are Unix milliseconds. A layout's ticks map onto them and back without loss, stores'
/// clocks speak them, and people can read them.
pub type UnixMs = u64;

/// A fencing token: rises with every acquisition of a slot, also after a store was wiped.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Token(pub u64);

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Which write of a record or of meta this is, as the store counts them. 0 is a record that does
/// not exist yet.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Version(pub u64);

/// The durable state of a slot. It outlives every lease: only presence expires.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Record {
    /// Of the last acquisition; erased by its release. The first of all fields: etcd can compare
    /// the beginning of a text, and not a part within it.
    pub nonce: Option<Nonce>,
    /// Of the last acquisition.
    pub token: Token,
    /// Who acquired it last, for people to read. Nobody is recognised by it.
    pub holder: String,
    /// The holder may use only times after this: the horizon of all holders before it.
    pub floor: UnixMs,
    /// No holder so far may have used a time after this.
    pub horizon: UnixMs,
    /// When the holder last wrote, by its own clock.
    pub renewed: UnixMs,
    /// When presence ends by the store's clock, where the store judges by its clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<UnixMs>,
    /// Whether the last holder itself released the slot: then it used no time after the horizon.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub released: bool,
    /// Whatever else the holder wants known: host, process, version, address.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub info: BTreeMap<String, String>,
}

/// What all holders of a namespace must agree on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Meta {
    /// Of every record in the namespace. A newer one than [`FORMAT`] is left alone.
    pub format: u32,
    /// Minted when the namespace was created.
    pub incarnation: Nonce,
    /// What times and numbers mean to the holders; compared as a whole.
    pub layout: String,
    /// The first worker that may be leased.
    pub first_worker: u32,
    /// The last worker that may be leased.
    pub last_worker: u32,
    /// No horizon is further from now than this, in milliseconds.
    pub window_ms: u64,
    /// Every new tenure starts above this, whatever its record says.
    pub quarantine: UnixMs,
    /// No slot that is new gets a token up to this: elections that had such tokens were forgotten.
    #[serde(default, skip_serializing_if = "is_lowest")]
    pub token_floor: Token,
    /// When the namespace was created.
    pub created: UnixMs,
}

/// As the format of earlier versions has it: they know no such floor.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
fn is_lowest(floor: &Token) -> bool {
    *floor == Token::default()
}

impl Meta {
    /// The meta of a namespace in which nobody has leased workers yet: elections need no layout.
    #[cfg(test)]
    pub(crate) const fn blank(incarnation: Nonce, created: UnixMs) -> Self {
        Self {
            format: FORMAT,
            incarnation,
            layout: String::new(),
            first_worker: 0,
            last_worker: 0,
            window_ms: 0,
            quarantine: 0,
            token_floor: Token(0),
            created,
        }
    }

    /// Whether nobody has leased workers yet: whoever is first fills the rest in.
    #[must_use]
    pub const fn is_blank(&self) -> bool {
        self.layout.is_empty()
    }

    /// The workers that may be leased.
    #[must_use]
    pub const fn workers(&self) -> RangeInclusive<u32> {
        self.first_worker..=self.last_worker
    }
}

/// Something read together with the version that a write must name to replace it. Stores that do
/// not count writes themselves keep it like this, as one text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Versioned<T> {
    /// Which write it is.
    pub version: Version,
    /// What was written.
    #[serde(flatten)]
    pub value: T,
}

/// Records, meta and nonces as text.
pub(crate) fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("texts, numbers and maps with text keys are JSON")
}

/// Meta out of its text, with its version where that is in the text. `removal`: what removes it by
/// hand.
///
/// # Errors
/// If it is of a newer format, or cannot be read; then the way out is said, too.
pub(crate) fn parse_meta<T: DeserializeOwned>(
    text: &[u8],
    removal: impl fmt::Display,
) -> Result<T, (ErrorKind, Reason)> {
    /// What every format has.
    #[derive(Deserialize)]
    struct Format {
        format: u32,
    }
    let corrupt = |error: serde_json::Error| {
        let why = format!(
            "meta cannot be read: remove it ({removal}), then run frazil store repair with the --layout \
             and the --workers of the namespace: it is created anew, in quarantine"
        );
        (ErrorKind::Corrupt, Reason::new(why, error))
    };
    // First, since nothing else is known of a newer format.
    let Format { format } = serde_json::from_slice(text).map_err(&corrupt)?;
    if format > FORMAT {
        let why = format!("meta has format {format}, and this program knows up to {FORMAT}");
        return Err((ErrorKind::NewerFormat, (why + ": use a newer one").into()));
    }
    serde_json::from_slice(text).map_err(corrupt)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn meta_of_a_newer_format_is_told_from_meta_that_is_broken() {
        let kind = |text: &str| parse_meta::<Meta>(text.as_bytes(), "rm").map_err(|(kind, _)| kind);
        assert_eq!(kind("{\"format\":99}"), Err(ErrorKind::NewerFormat));
        assert_eq!(kind("{\"format\":1}"), Err(ErrorKind::Corrupt));
        assert_eq!(kind("nonsense"), Err(ErrorKind::Corrupt));
    }
}
