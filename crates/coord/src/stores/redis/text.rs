//! Records as text: JSON with the version in it, and numbers that scripts can read.

use super::scripts::sha1;
use crate::record::{Record, Version, Versioned};

/// The largest number that scripts compute with exactly.
pub(super) const EXACT_MAX: u64 = (1 << 53) - 1;

/// What a stored text says: its version, and its record if scripts can read it too.
pub(super) fn record(text: &str) -> (Version, Option<Record>) {
    match serde_json::from_str::<Versioned<Record>>(text) {
        Ok(Versioned { version, value })
            if (1..=EXACT_MAX).contains(&version.0) && fits(&value) =>
        {
            (version, Some(value))
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
}
