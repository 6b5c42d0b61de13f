//! Texts for people, as all of Frazil's programs write them: counts, durations and times.

use std::time::Duration;

use frazil_id::rfc3339;

/// A number of things: `1 record`, `2 records`.
#[must_use]
pub fn count(number: impl TryInto<u64>, thing: &str) -> String {
    let number = number.try_into().unwrap_or(u64::MAX);
    let ending = if number == 1 { "" } else { "s" };
    format!("{number} {thing}{ending}")
}

/// A duration as flags and settings write it: `10s`, `1500ms`.
#[must_use]
pub fn span(duration: Duration) -> String {
    let ms = duration.as_millis();
    match ms {
        _ if ms > 0 && ms.is_multiple_of(3_600_000) => format!("{}h", ms / 3_600_000),
        _ if ms > 0 && ms.is_multiple_of(60_000) => format!("{}m", ms / 60_000),
        _ if ms.is_multiple_of(1000) => format!("{}s", ms / 1000),
        _ => format!("{ms}ms"),
    }
}

/// A time as RFC 3339; times beyond what that can write stay numbers.
#[must_use]
pub fn instant(unix_ms: u64) -> String {
    match i64::try_from(unix_ms) {
        Ok(ms) => rfc3339::Instant::from_unix_ms(ms).to_string(),
        Err(_) => unix_ms.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_not_many() {
        assert_eq!(count(1_u32, "record"), "1 record");
        assert_eq!(count(0_u32, "record"), "0 records");
        assert_eq!(count(2_usize, "record"), "2 records");
    }

    #[test]
    fn times_that_no_calendar_has_stay_numbers() {
        assert_eq!(instant(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(instant(u64::MAX), "18446744073709551615");
    }
}
