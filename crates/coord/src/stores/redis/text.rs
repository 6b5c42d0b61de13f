//! Records and meta as text: JSON with the version in it.

use serde::Deserialize;

use super::scripts::sha1;
use crate::error::ErrorKind;
use crate::record::{FORMAT, Meta, Record, Version, Versioned};

/// The largest number that scripts compute with exactly.
pub(super) const EXACT_MAX: u64 = (1 << 53) - 1;

/// A record with the version that scripts put into its text.
#[derive(Deserialize)]
struct Stored<T> {
    version: u64,
    #[serde(flatten)]
    value: T,
}

/// What a stored text says: its version, and its record if scripts can read it too.
pub(super) fn record(text: &str) -> (Version, Option<Record>) {
    match serde_json::from_str::<Stored<Record>>(text) {
        Ok(Stored { version, value }) if version > 0 && version <= EXACT_MAX && fits(&value) => {
            (Version(version), Some(value))
        }
        _ => (fingerprint(text), None),
    }
}

/// Whether scripts can read all its numbers.
pub(super) fn fits(record: &Record) -> bool {
    let numbers = [record.token.0, record.floor, record.horizon, record.renewed];
    numbers.into_iter().chain(record.expires).all(|number| number <= EXACT_MAX)
}

/// Stands in for the version of a record that cannot be read, so that it can be replaced. The
/// scripts compute the same.
fn fingerprint(text: &str) -> Version {
    Version(u64::from_str_radix(&sha1(text)[..12], 16).unwrap_or(1))
}

/// What the text of meta says.
pub(super) fn meta(text: &str) -> Result<Versioned<Meta>, (ErrorKind, String)> {
    #[derive(Deserialize)]
    struct Format {
        format: u32,
    }
    let corrupt = |error: serde_json::Error| (ErrorKind::Corrupt, format!("meta: {error}"));
    let Format { format } = serde_json::from_str(text).map_err(corrupt)?;
    if format > FORMAT {
        return Err((ErrorKind::NewerFormat, newer(format)));
    }
    let Stored { version, value } = serde_json::from_str(text).map_err(corrupt)?;
    Ok(Versioned { version: Version(version), value })
}

pub(super) fn newer(format: impl std::fmt::Display) -> String {
    format!("meta has format {format}, and this program knows up to {FORMAT}: use a newer one")
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECORD: &str = r#"{"version":5,"token":7,"floor":1,"horizon":2,"renewed":3,
        "nonce":"00000000000000000000000000000abc","holder":"me","lineage":"x","later":[1]}"#;

    #[test]
    fn a_record_is_read_with_fields_of_later_versions() {
        let (version, found) = record(RECORD);
        assert_eq!(version, Version(5));
        assert_eq!(found.map(|record| record.holder), Some("me".into()));
    }

    #[test]
    fn what_scripts_cannot_read_is_unreadable_here_too() {
        let broken = [
            RECORD.replace("\"horizon\":2", "\"horizon\":9007199254740992"),
            RECORD.replace("\"version\":5,", ""),
            RECORD.replace("\"version\":5", "\"version\":0"),
            RECORD.replace("abc", "xyz"),
            RECORD.replace('}', ""),
        ];
        for text in broken {
            let (version, found) = record(&text);
            assert!(found.is_none() && version.0 > 0, "{text}");
        }
    }

    #[test]
    fn meta_of_a_newer_format_is_told_from_meta_that_is_broken() {
        let kind = |text: &str| meta(text).map_err(|(kind, _)| kind);
        assert_eq!(kind("{\"format\":99}"), Err(ErrorKind::NewerFormat));
        assert_eq!(kind("{\"format\":1}"), Err(ErrorKind::Corrupt));
        assert_eq!(kind("nonsense"), Err(ErrorKind::Corrupt));
    }
}
