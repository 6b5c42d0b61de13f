//! A key as its file describes it.

use std::num::NonZeroU32;

use frazil_id::rfc3339;
use serde::{Deserialize, Serialize};

use super::text::{HASH_BYTES, NewKey};

/// What a key may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Have Ids issued.
    Ids,
    /// Look: the cluster and the metrics.
    Read,
    /// Look, and drain, rotate and release.
    Admin,
}

/// An entry of the file of keys.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct KeyEntry {
    /// The public part of the key's text; tells it from all others.
    pub id: String,
    /// Whose it is.
    pub name: String,
    /// What it may do.
    pub roles: Vec<Role>,
    /// The scopes it may name; without them all, and none at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scopes: Option<Vec<String>>,
    /// How many Ids it may have in a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ids_per_second: Option<NonZeroU32>,
    /// When it ends, as RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<String>,
    /// The SHA-256 of its text, in hexadecimal digits.
    pub sha256: String,
}

impl KeyEntry {
    /// An entry for a new key.
    #[must_use]
    pub fn of(key: &NewKey, name: &str, roles: Vec<Role>) -> Self {
        Self {
            id: key.id().to_owned(),
            name: name.to_owned(),
            roles,
            scopes: None,
            ids_per_second: None,
            expires: None,
            sha256: key.sha256(),
        }
    }

    /// What is wrong with it, if something is.
    ///
    /// # Errors
    /// The first fault.
    pub fn check(&self) -> Result<(), String> {
        let is_word = |text: &str| {
            (1..=64).contains(&text.len())
                && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b))
        };
        if !is_word(&self.id) || self.id.contains('_') {
            return Err(format!("{:?} is not the id of a key", self.id));
        }
        if !is_word(&self.name) {
            let name = &self.name;
            return Err(format!("{name:?} is not a name: use letters, digits, '.', '_', '-'"));
        }
        if self.roles.is_empty() {
            return Err("the key has no role: give it ids, read or admin".to_owned());
        }
        if self.scopes.as_ref().is_some_and(Vec::is_empty) {
            return Err("scopes is empty: name some, or leave it out for all".to_owned());
        }
        if parse_hash(&self.sha256).is_none() {
            return Err("sha256 must be 64 hexadecimal digits".to_owned());
        }
        match &self.expires {
            Some(text) if self.expires_ms().is_none() => {
                Err(format!("{text:?} is not a time as 2027-01-31T00:00:00Z"))
            }
            _ => Ok(()),
        }
    }

    pub(super) fn hash(&self) -> [u8; HASH_BYTES] {
        // Checked when it was read; one that is not opens nothing.
        parse_hash(&self.sha256).unwrap_or_default()
    }

    /// When it ends, in Unix milliseconds.
    #[must_use]
    pub fn expires_ms(&self) -> Option<u64> {
        let instant: rfc3339::Instant = self.expires.as_ref()?.parse().ok()?;
        Some(u64::try_from(instant.unix_ms()).unwrap_or(0))
    }
}

fn parse_hash(digits: &str) -> Option<[u8; HASH_BYTES]> {
    let mut bytes = [0; HASH_BYTES];
    if digits.len() != 2 * HASH_BYTES || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    for (byte, at) in bytes.iter_mut().zip((0..).step_by(2)) {
        *byte = u8::from_str_radix(digits.get(at..at + 2)?, 16).ok()?;
    }
    Some(bytes)
}
