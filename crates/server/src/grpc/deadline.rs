//! The deadline of a client.

use std::time::Duration;

use tonic::metadata::MetadataMap;

/// What the `grpc-timeout` header says: up to eight digits and a unit.
pub(super) fn patience(metadata: &MetadataMap) -> Option<Duration> {
    parse(metadata.get("grpc-timeout")?.to_str().ok()?)
}

fn parse(text: &str) -> Option<Duration> {
    let digits = text.get(..text.len().checked_sub(1)?)?;
    if digits.is_empty() || digits.len() > 8 {
        return None;
    }
    let number: u64 = digits.parse().ok()?;
    match text.as_bytes().last()? {
        b'H' => Some(Duration::from_secs(number * 3600)),
        b'M' => Some(Duration::from_secs(number * 60)),
        b'S' => Some(Duration::from_secs(number)),
        b'm' => Some(Duration::from_millis(number)),
        b'u' => Some(Duration::from_micros(number)),
        b'n' => Some(Duration::from_nanos(number)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeout_is_digits_and_a_unit() {
        assert_eq!(parse("250m"), Some(Duration::from_millis(250)));
        assert_eq!(parse("99999999H"), Some(Duration::from_secs(99_999_999 * 3600)));
        assert_eq!(parse("7n"), Some(Duration::from_nanos(7)));
        for text in ["", "m", "10", "10x", "-1S", "123456789S", "1\u{e9}"] {
            assert_eq!(parse(text), None, "{text:?}");
        }
    }
}
