//! A key as its file describes it.

use std::num::NonZeroU32;

use frazil_id::rfc3339;
use serde::{Deserialize, Serialize};

use super::text::{HASH_BYTES, NewKey};
use crate::net::certificate::CertificateName;

/// Bytes of a name in a certificate: a few lines of text.
const CERTIFICATE_BYTES_MAX: usize = 1024;

/// What a key may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Role {
    /// Have IDs issued.
    Ids,
    /// Forward requests for IDs of strict scopes, as nodes do among each other.
    Peer,
    /// Look: the cluster and the metrics.
    Read,
    /// Look, and drain, rotate and release.
    Admin,
}

impl Role {
    /// The role in a word, as the file of keys has it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Ids => "ids",
            Self::Peer => "peer",
            Self::Read => "read",
            Self::Admin => "admin",
        }
    }
}

/// An entry of the file of keys.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct KeyEntry {
    /// The public part of the key's text; tells it from all others.
    pub id: String,
    /// The name of its owner.
    pub name: String,
    /// What it may do.
    pub roles: Vec<Role>,
    /// The scopes it may name; without them all, and none at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scopes: Option<Vec<String>>,
    /// How many IDs it may have in a second, of each node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ids_per_second: Option<NonZeroU32>,
    /// How many IDs it may have in a second of all nodes together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ids_per_second_cluster: Option<NonZeroU32>,
    /// When it ends, as RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<String>,
    /// The whole subject of a client certificate that stands for the key, as RFC 4514 writes it:
    /// `CN=orders,O=Example`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate_subject: Option<String>,
    /// A DNS name or a URI among the alternative names of such a certificate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate_san: Option<String>,
    /// The SHA-256 of its text, in hexadecimal digits. Empty if it has none, but a certificate.
    #[serde(default, skip_serializing_if = "String::is_empty")]
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
            ids_per_second_cluster: None,
            expires: None,
            certificate_subject: None,
            certificate_san: None,
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
            return Err("the key has no role: give it ids, peer, read or admin".to_owned());
        }
        if self.scopes.as_ref().is_some_and(Vec::is_empty) {
            return Err("scopes is empty: name some, or leave it out for all".to_owned());
        }
        if self.ids_per_second.is_some() && self.ids_per_second_cluster.is_some() {
            let why = "a key has one quota: leave out ids_per_second or ids_per_second_cluster";
            return Err(why.to_owned());
        }
        if self.sha256.is_empty() && self.certificates().next().is_none() {
            let what = "sha256, certificate_subject or certificate_san";
            return Err(format!("nothing tells whose the key is: give it {what}"));
        }
        if !self.sha256.is_empty() && parse_hash(&self.sha256).is_none() {
            return Err("sha256 must be 64 hexadecimal digits".to_owned());
        }
        self.check_certificates()?;
        match &self.expires {
            Some(text) if self.expires_ms().is_none() => {
                Err(format!("{text:?} is not a time as 2027-01-31T00:00:00Z"))
            }
            _ => Ok(()),
        }
    }

    fn check_certificates(&self) -> Result<(), String> {
        let is_text = |text: &str| {
            (1..=CERTIFICATE_BYTES_MAX).contains(&text.len()) && !text.contains(char::is_control)
        };
        match (&self.certificate_subject, &self.certificate_san) {
            (Some(subject), _) if !is_text(subject) || !subject.contains('=') => Err(format!(
                "{subject:?} is no subject of a certificate: write CN=orders,O=Example"
            )),
            (_, Some(san)) if !is_text(san) => Err(format!(
                "{san:?} is no alternative name: write a DNS name, or a URI as spiffe://example/orders"
            )),
            _ => Ok(()),
        }
    }

    /// The names in certificates that stand for the key.
    pub(crate) fn certificates(&self) -> impl Iterator<Item = CertificateName> {
        let subject = self.certificate_subject.clone().map(CertificateName::Subject);
        let san = self.certificate_san.as_deref().map(CertificateName::alternative);
        subject.into_iter().chain(san)
    }

    pub(super) fn hash(&self) -> [u8; HASH_BYTES] {
        // Checked when it was read; one that is not there opens nothing.
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
