//! Values as TOML and as JSON.

use serde_json::Value;

use crate::config::Kind;

/// A value of the file, from how it would be typed.
pub(super) fn toml(kind: Kind, texts: &[String]) -> String {
    let single = texts.first().map_or("", String::as_str);
    match kind {
        Kind::Text | Kind::Duration => quoted(single),
        Kind::Number => single.to_owned(),
        Kind::NumberOrText if single.parse::<u64>().is_ok() => single.to_owned(),
        Kind::NumberOrText => quoted(single),
        Kind::Truth => is_true(single).to_string(),
        Kind::List => {
            let items: Vec<_> = texts.iter().map(|text| quoted(text)).collect();
            format!("[{}]", items.join(", "))
        }
    }
}

/// The same for programs.
pub(super) fn json(kind: Kind, texts: &[String]) -> Value {
    let single = texts.first().map_or("", String::as_str);
    match kind {
        Kind::Text | Kind::Duration => single.into(),
        Kind::Number | Kind::NumberOrText => {
            single.parse::<u64>().map_or_else(|_| single.into(), Value::from)
        }
        Kind::Truth => is_true(single).into(),
        Kind::List => texts.into(),
    }
}

/// As the arguments read it.
fn is_true(text: &str) -> bool {
    ["y", "yes", "t", "true", "on", "1"].contains(&text.to_ascii_lowercase().as_str())
}

/// A basic string: what steers a terminal is escaped, which TOML wants for some of it.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\'' => quoted.push(c),
            _ if c.escape_debug().len() == 1 => quoted.push(c),
            _ => quoted.push_str(&format!("\\U{:08x}", u32::from(c))),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_read_back_as_it_was() {
        for text in ["", "a b", "it's \"\\\"", "a\nb\u{1b}\u{202e}\u{1f9ca}\u{7f}\u{fc}"] {
            let document = format!("x = {}", toml(Kind::Text, &[text.to_owned()]));
            assert!(!document.chars().any(char::is_control), "{document:?}");
            let table = toml::de::DeTable::parse(&document).unwrap();
            assert_eq!(table.get_ref()["x"].get_ref().as_str(), Some(text));
        }
    }
}
