//! How things are written for people: counts, times, slots, and what others wrote.

use std::fmt::{self, Display};
use std::time::Duration;

use frazil::coord::{Group, Slot, UnixMs};
use frazil_id::rfc3339;

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
        };
        write!(f, "{kind} {}", self.0.name())
    }
}

/// What others wrote into the store must not steer the terminal, nor turn its text around: what
/// is not printed is shown as an escape.
pub(crate) fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '"' | '\'' => shown.push(c),
            _ => shown.extend(c.escape_debug()),
        }
    }
    shown
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

    #[test]
    fn characters_that_steer_a_terminal_or_turn_text_around_are_escaped() {
        for (text, shown) in [
            ("web1:4711", "web1:4711"),
            ("it's \"M\u{fc}nchen\"", "it's \"M\u{fc}nchen\""),
            ("\u{1b}[31mred", "\\u{1b}[31mred"),
            ("a\u{202e}b", "a\\u{202e}b"),
            ("a\u{200b}b\u{feff}", "a\\u{200b}b\\u{feff}"),
            ("a\u{9b}b\nc", "a\\u{9b}b\\nc"),
        ] {
            assert_eq!(printable(text), shown);
        }
    }
}
