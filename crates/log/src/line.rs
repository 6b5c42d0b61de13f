//! A record as a line: escaped, and no longer than a line may be.

use std::fmt::Write;

use tracing::Level;

use super::record::{Record, Value};

/// Bytes of a line: what is longer is no message, and collectors cut it anyhow.
pub(super) const LINE_BYTES_MAX: usize = 8192;
/// What a line ends with that was cut.
const CUT_MARK: &str = " [cut]";
/// What is left of a line to close a JSON object: `"},"cut":true}`.
const CLOSING_BYTES: usize = 32;

/// `TIME LEVEL target: message key=value`
pub(super) fn text(record: &Record, time: &str, is_coloured: bool) -> String {
    let mut line = Line::new(LINE_BYTES_MAX - CUT_MARK.len());
    line.is_cut = record.is_cut;
    let level = record.level.as_str();
    let (colour, plain) = if is_coloured { (colour(record.level), "\x1b[0m") } else { ("", "") };
    line.put(&format!("{time} {colour}{level}{plain} "));
    line.escaped(record.target, in_text);
    line.put(": ");
    line.escaped(&record.message, in_text);
    for (name, value) in &record.fields {
        line.put(" ");
        line.escaped(name, in_text);
        line.put("=");
        match value {
            Value::Plain(value) => line.put(value),
            Value::Text(value) if is_word(value) => line.escaped(value, in_text),
            Value::Text(value) => {
                line.put("\"");
                line.escaped(value, in_quotes);
                line.put("\"");
            }
        }
    }
    if line.is_cut {
        line.text.push_str(CUT_MARK);
    }
    line.text
}

/// An object of time, level, target, message and fields.
pub(super) fn json(record: &Record, time: &str) -> String {
    let mut line = Line::new(LINE_BYTES_MAX - CLOSING_BYTES);
    let level = record.level.as_str();
    line.put(&format!(r#"{{"time":"{time}","level":"{level}","target":"#));
    line.string(record.target);
    line.put(r#","message":"#);
    line.string(&record.message);
    line.text.push_str(r#","fields":{"#);
    for (index, (name, value)) in record.fields.iter().enumerate() {
        let overhead = r#","":"""#.len() + name.len();
        let least = match value {
            Value::Plain(value) => overhead + value.len(),
            Value::Text(_) => overhead,
        };
        if line.is_cut || line.room() < least {
            line.is_cut = true;
            break;
        }
        if index > 0 {
            line.put(",");
        }
        line.string(name);
        line.put(":");
        match value {
            Value::Plain(value) => line.put(value),
            Value::Text(value) => line.string(value),
        }
    }
    let is_cut = line.is_cut || record.is_cut;
    line.text.push_str(if is_cut { r#"},"cut":true}"# } else { "}}" });
    line.text
}

/// A line that grows up to its end; what comes after that is left out.
struct Line {
    text: String,
    most: usize,
    is_cut: bool,
}

impl Line {
    const fn new(most: usize) -> Self {
        Self { text: String::new(), most, is_cut: false }
    }

    const fn room(&self) -> usize {
        self.most.saturating_sub(self.text.len())
    }

    fn put(&mut self, piece: &str) {
        if self.text.len() + piece.len() <= self.most {
            self.text.push_str(piece);
        } else {
            self.is_cut = true;
        }
    }

    /// Puts a text, one whole escape after the other.
    fn escaped(&mut self, text: &str, escape: impl Fn(char, &mut String)) {
        let mut piece = String::new();
        for c in text.chars() {
            piece.clear();
            escape(c, &mut piece);
            if piece.len() > self.room() {
                self.is_cut = true;
                return;
            }
            self.text.push_str(&piece);
        }
    }

    /// A JSON string; its quotes are always closed.
    fn string(&mut self, text: &str) {
        self.text.push('"');
        self.escaped(text, in_json);
        self.text.push('"');
    }
}

/// As Rust escapes, but with quotes as they are.
fn in_text(c: char, piece: &mut String) {
    match c {
        '"' | '\'' => piece.push(c),
        _ => piece.extend(c.escape_debug()),
    }
}

fn in_quotes(c: char, piece: &mut String) {
    match c {
        '\'' => piece.push(c),
        _ => piece.extend(c.escape_debug()),
    }
}

/// More is escaped than JSON asks for: a terminal obeys other characters as well.
fn in_json(c: char, piece: &mut String) {
    match c {
        '"' => piece.push_str("\\\""),
        '\\' => piece.push_str("\\\\"),
        '\n' => piece.push_str("\\n"),
        '\'' => piece.push(c),
        _ if c.escape_debug().len() == 1 => piece.push(c),
        _ => {
            for unit in c.encode_utf16(&mut [0; 2]) {
                // A string takes everything.
                let _ = write!(piece, "\\u{unit:04x}");
            }
        }
    }
}

/// Whether a value needs no quotes to be told from what follows it.
fn is_word(value: &str) -> bool {
    !value.is_empty() && !value.contains([' ', '"', '='])
}

const fn colour(level: Level) -> &'static str {
    match level {
        Level::ERROR => "\x1b[31m",
        Level::WARN => "\x1b[33m",
        Level::INFO => "\x1b[32m",
        Level::DEBUG => "\x1b[34m",
        Level::TRACE => "\x1b[35m",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const TIME: &str = "2026-11-15T17:31:11.988Z";

    fn record(message: &str, fields: &[(&'static str, &str)]) -> Record {
        let fields = fields.iter().map(|(name, text)| (*name, Value::Text((*text).to_owned())));
        Record { fields: fields.collect(), ..Record::new(Level::WARN, "frazil_server", message) }
    }

    fn parsed(record: &Record) -> serde_json::Value {
        serde_json::from_str(&json(record, TIME)).unwrap()
    }

    #[test]
    fn a_record_has_its_time_level_target_message_and_fields() {
        let mut record = record("it's \"late\"", &[("error", "timed out"), ("node", "n1")]);
        record.fields.push(("most", Value::Plain("7".to_owned())));
        assert_eq!(
            text(&record, TIME, false),
            "2026-11-15T17:31:11.988Z WARN frazil_server: it's \"late\" error=\"timed out\" node=n1 \
             most=7"
        );
        assert_eq!(
            parsed(&record),
            json!({"time": TIME, "level": "WARN", "target": "frazil_server",
                   "message": "it's \"late\"",
                   "fields": {"error": "timed out", "node": "n1", "most": 7}})
        );
        let coloured = text(&record, TIME, true);
        assert!(coloured.contains(" \x1b[33mWARN\x1b[0m "), "{coloured}");
    }

    #[test]
    fn no_character_can_break_a_line_or_steer_a_terminal() {
        let evil = "a\nb\r\u{1b}[2J\u{9b}\u{7f}\u{2028}\u{202e}\u{0}\t\\ \"x\"=\u{1f9ca} k=v";
        let record = record(evil, &[("who", evil)]);
        for line in [text(&record, TIME, false), json(&record, TIME)] {
            assert!(!line.chars().any(char::is_control), "{line:?}");
            assert!(!line.contains(['\u{2028}', '\u{202e}']), "{line:?}");
        }
        let object = parsed(&record);
        assert_eq!((&object["message"], &object["fields"]["who"]), (&evil.into(), &evil.into()));
        let forged = text(&self::record("m", &[("who", "x\" level=\"y")]), TIME, false);
        assert!(forged.ends_with(r#" who="x\" level=\"y""#), "{forged}");
    }

    #[test]
    fn a_line_is_cut_at_its_limit_and_says_so() {
        let long = "\u{1b}\u{1f9ca}".repeat(LINE_BYTES_MAX);
        for fields in [&[][..], &[("a", long.as_str()), ("b", "c")]] {
            for message in ["short", &long] {
                let record = record(message, fields);
                let is_cut = message == long || !fields.is_empty();
                let line = text(&record, TIME, false);
                assert!(line.len() <= LINE_BYTES_MAX);
                assert_eq!(line.ends_with(CUT_MARK), is_cut);
                assert!(json(&record, TIME).len() <= LINE_BYTES_MAX);
                assert_eq!(parsed(&record)["cut"] == true, is_cut);
            }
        }
        let plain = [("n", Value::Plain("18446744073709551615".to_owned()))];
        let many = plain.into_iter().cycle().take(2000).collect();
        let many = Record { fields: many, ..record("m", &[]) };
        assert!(text(&many, TIME, false).len() <= LINE_BYTES_MAX);
        assert!(json(&many, TIME).len() <= LINE_BYTES_MAX);
        assert_eq!(parsed(&many)["cut"], true);
    }
}
