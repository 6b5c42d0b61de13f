//! Texts for people: counts, times, slots, and what others wrote.

use std::fmt::{self, Display};
use std::time::Duration;

use frazil::coord::{Group, Slot, UnixMs};
use frazil_id::rfc3339;
pub(crate) use frazil_wire::printable;

/// A number of things: `1 record`, `2 records`.
pub(crate) fn count(number: impl TryInto<u64>, thing: &str) -> String {
    let number = number.try_into().unwrap_or(u64::MAX);
    let ending = if number == 1 { "" } else { "s" };
    format!("{number} {thing}{ending}")
}

/// A duration as flags write it: `10s`, `1500ms`.
pub(crate) fn span(duration: Duration) -> String {
    let ms = duration.as_millis();
    match ms {
        _ if ms > 0 && ms.is_multiple_of(3_600_000) => format!("{}h", ms / 3_600_000),
        _ if ms > 0 && ms.is_multiple_of(60_000) => format!("{}m", ms / 60_000),
        _ if ms.is_multiple_of(1000) => format!("{}s", ms / 1000),
        _ => format!("{ms}ms"),
    }
}

/// A time as RFC 3339; times beyond what that can write stay numbers.
pub(crate) fn instant(unix_ms: UnixMs) -> String {
    match i64::try_from(unix_ms) {
        Ok(ms) => rfc3339::Instant::from_unix_ms(ms).to_string(),
        Err(_) => unix_ms.to_string(),
    }
}

/// A slot by what it is.
pub(crate) struct Called<'a>(pub(crate) &'a Slot);

impl Display for Called<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.0.group() {
            Group::Workers => "worker",
            Group::Elections => "election",
            Group::Scopes => "scope",
            Group::Keys => "list of API keys",
            _ => "slot",
        };
        write!(f, "{kind} {}", self.0.name())
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
    fn durations_are_written_so_that_flags_take_them() {
        for text in ["1500ms", "10s", "90s", "10m", "2h", "0s"] {
            let duration = frazil::coord::duration(text).unwrap();
            assert_eq!(span(duration), text);
        }
    }
}
