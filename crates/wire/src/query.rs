//! Values as they may stand in a query.

/// A value of a query, with everything that could mean something there as `%` and two digits.
///
/// ```
/// assert_eq!(frazil_wire::query_value("a b&c"), "a%20b%26c");
/// ```
#[must_use]
pub fn query_value(text: &str) -> String {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    let mut value = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                value.push(char::from(byte));
            }
            _ => {
                let digits = [byte >> 4, byte & 15].map(|half| DIGITS[usize::from(half)]);
                value.push('%');
                value.extend(digits.map(char::from));
            }
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_mean_something_in_a_query_is_encoded() {
        assert_eq!(query_value("orders-2.x_~"), "orders-2.x_~");
        assert_eq!(query_value("a b&c=%+\u{e9}"), "a%20b%26c%3D%25%2B%C3%A9");
        assert_eq!(query_value("a&count=9\r\n"), "a%26count%3D9%0D%0A");
        assert_eq!(query_value(""), "");
    }
}
