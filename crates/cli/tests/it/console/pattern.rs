//! Output as a page shows it: numbers, times and the host's name stand for others, and `...` for anything.

/// Whether a program printed what the page shows. White space does not count: pages break long lines,
/// and columns are as wide as what is in them.
pub(crate) fn matches(shown: &str, printed: &str, is_exact: bool) -> bool {
    let normal = |text: &str| {
        let dense: String = text.split_whitespace().collect();
        if is_exact { dense } else { shape(&dense) }
    };
    let printed = normal(printed);
    let pieces: Vec<String> = shown.split("...").map(normal).collect();
    let [first, middle @ .., last] = pieces.as_slice() else {
        return pieces.first() == Some(&printed);
    };
    let Some(mut rest) = printed.strip_prefix(first.as_str()) else { return false };
    for piece in middle {
        let Some(at) = rest.find(piece.as_str()) else { return false };
        rest = &rest[at + piece.len()..];
    }
    rest.ends_with(last.as_str())
}

/// A text with `#` for each number or time in it.
fn shape(text: &str) -> String {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let mut shape = String::new();
    let mut in_number = false;
    // A slower machine takes milliseconds for what took microseconds.
    let text = text.replace(&host, "HOST").replace("web1", "HOST").replace("us", "ms");
    for letter in text.chars() {
        let goes_on = in_number && (letter.is_ascii_digit() || ".,:-TZ".contains(letter));
        if letter.is_ascii_digit() && !goes_on {
            shape.push('#');
        }
        in_number = goes_on || letter.is_ascii_digit();
        if !in_number {
            shape.push(letter);
        }
    }
    shape
}

#[test]
fn numbers_stand_for_others_and_dots_for_anything() {
    assert!(matches(
        "worker 7 at 2026-11-15T10:08:16.583Z",
        "worker 12 at 2027-01-01T00:00:00Z",
        false
    ));
    assert!(matches("a\n...\nd\n", "a\nb\nc\nd\n", false));
    assert!(matches("a\n...\n", "a\nb\n", false));
    assert!(matches("x 1,\ny", "x 2,y\n", false));
    assert!(!matches("a\n...\nd\n", "a\nb\n", false));
    assert!(!matches("a\n", "a\nb\n", false));
    assert!(!matches("worker 7", "node 7", false));
    assert!(!matches("7", "8", true));
}
