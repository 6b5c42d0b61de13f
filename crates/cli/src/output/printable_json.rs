//! JSON that steers no terminal: what is not printed is written as an escape of JSON.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::Formatter;

/// Writes an object on one line. Its meaning is the same as without the escapes.
pub(super) fn write(out: impl Write, object: &impl Serialize) -> serde_json::Result<()> {
    object.serialize(&mut serde_json::Serializer::with_formatter(out, PrintableFormatter))
}

struct PrintableFormatter;

impl Formatter for PrintableFormatter {
    /// What JSON itself asks to be escaped never comes here.
    fn write_string_fragment<W: Write + ?Sized>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        let mut rest = fragment;
        while let Some((at, c)) = rest.char_indices().find(|(_, c)| !is_printed(*c)) {
            writer.write_all(&rest.as_bytes()[..at])?;
            for unit in c.encode_utf16(&mut [0; 2]) {
                write!(writer, "\\u{unit:04x}")?;
            }
            rest = &rest[at + c.len_utf8()..];
        }
        writer.write_all(rest.as_bytes())
    }
}

fn is_printed(c: char) -> bool {
    matches!(c, '"' | '\'' | '\\') || c.escape_debug().len() == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_steers_a_terminal_is_escaped_and_means_the_same() {
        let evil =
            "a\u{1b}[2J\u{9b}31m\u{202e}\u{2028}\u{feff}\u{e0001}\n\t\"\\'\u{fc}\u{1f9ca}\u{7f}";
        let mut out = Vec::new();
        write(&mut out, &serde_json::json!({ evil: [evil, 7] })).unwrap();
        let text = String::from_utf8(out).unwrap();
        let unprinted = |c: char| c.is_control() || "\u{202e}\u{2028}\u{feff}\u{e0001}".contains(c);
        assert!(!text.contains(unprinted), "{text:?}");
        assert!(text.contains("\\u009b31m\\u202e\\u2028\\ufeff\\udb40\\udc01"), "{text}");
        assert!(text.contains("\u{fc}\u{1f9ca}"), "what is printed stays as it is: {text}");
        let read: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(read, serde_json::json!({ evil: [evil, 7] }));
    }
}
