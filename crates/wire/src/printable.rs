//! Text of others, made safe to show.

/// What others wrote must not steer a terminal, nor turn its text around: what is not printed is
/// shown as an escape.
#[must_use]
pub fn printable(text: &str) -> String {
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
