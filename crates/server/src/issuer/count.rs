//! The number of IDs that a request asks for, as text.

use frazil_wire::{ApiError, Reason};

/// Reads a count: decimal digits and nothing else. Whether so many are given, the issuer knows.
pub(crate) fn parse_count(text: &[u8]) -> Result<u32, ApiError> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err(ApiError::new(
            Reason::InvalidArgument,
            "the count must be a whole number in decimal digits",
        ));
    }
    // Negative, or more than 32 bits hold: out of any range.
    let count = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
    count.ok_or_else(|| {
        ApiError::new(
            Reason::CountOutOfRange,
            "the count is out of range: ask for 1 up to limits.max_count of /v1/info",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_decimal_digits_are_a_count() {
        let reason = |text: &str| parse_count(text.as_bytes()).map_err(|error| error.reason);
        assert_eq!(reason("1000"), Ok(1000));
        assert_eq!(reason("0"), Ok(0));
        assert_eq!(reason("007"), Ok(7));
        let megabyte = "9".repeat(1 << 20);
        for text in ["-1", "-0", "9223372036854775808", "4294967296", &megabyte] {
            assert_eq!(reason(text), Err(Reason::CountOutOfRange), "{text:.20}");
        }
        for text in ["", "-", "--1", "1e3", "0x10", " 7", "7 ", "7,8", "+1", "1.0", "\u{665}"] {
            assert_eq!(reason(text), Err(Reason::InvalidArgument), "{text:?}");
        }
    }
}
