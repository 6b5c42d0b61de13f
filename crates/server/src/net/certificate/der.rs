//! Values of DER, as certificates are written in.

pub(crate) const OBJECT_IDENTIFIER: u8 = 0x06;
pub(crate) const UTF8_STRING: u8 = 0x0c;
pub(crate) const PRINTABLE_STRING: u8 = 0x13;
pub(crate) const IA5_STRING: u8 = 0x16;
pub(crate) const UTC_TIME: u8 = 0x17;
pub(crate) const GENERALIZED_TIME: u8 = 0x18;
pub(crate) const SEQUENCE: u8 = 0x30;
pub(crate) const SET: u8 = 0x31;

/// A value, and what follows it.
pub(crate) struct Value<'a> {
    pub(crate) tag: u8,
    pub(crate) content: &'a [u8],
    pub(crate) rest: &'a [u8],
}

/// The value that the input begins with, if that is whole.
pub(crate) fn next(input: &[u8]) -> Option<Value<'_>> {
    let (&tag, rest) = input.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = match first {
        0..=0x7f => (usize::from(first), rest),
        // More digits than these are no certificate.
        0x81..=0x83 => {
            let (digits, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
            (digits.iter().fold(0, |length, digit| length << 8 | usize::from(*digit)), rest)
        }
        _ => return None,
    };
    let (content, rest) = rest.split_at_checked(length)?;
    Some(Value { tag, content, rest })
}

/// All values of the input, if each is whole and has that tag.
pub(crate) fn all(mut input: &[u8], tag: u8) -> Option<Vec<&[u8]>> {
    let mut found = Vec::new();
    while !input.is_empty() {
        let value = next(input).filter(|value| value.tag == tag)?;
        found.push(value.content);
        input = value.rest;
    }
    Some(found)
}
