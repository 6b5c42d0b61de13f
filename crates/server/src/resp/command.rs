//! The commands of RESP.

use frazil_wire::{ApiError, Reason};

use super::reply::Shape;
use crate::issuer::parse_count;
use crate::policy::access::Permission;

/// The commands there are, and what each needs.
pub(super) const COMMANDS: [(&str, Permission); 16] = [
    ("id.next", Permission::Ids),
    ("id.decode", Permission::AnyKey),
    ("id.info", Permission::AnyKey),
    ("incr", Permission::Ids),
    ("incrby", Permission::Ids),
    ("ping", Permission::AnyKey),
    ("echo", Permission::AnyKey),
    ("hello", Permission::Nothing),
    ("auth", Permission::Nothing),
    ("select", Permission::AnyKey),
    ("client", Permission::AnyKey),
    ("command", Permission::AnyKey),
    ("config", Permission::AnyKey),
    ("info", Permission::AnyKey),
    ("reset", Permission::Nothing),
    ("quit", Permission::Nothing),
];

/// What a command needs. One that does not exist is not told from others without a key.
pub(super) fn permission(name: &[u8]) -> Permission {
    let found = COMMANDS.iter().find(|(known, _)| is(name, known));
    found.map_or(Permission::AnyKey, |(_, permission)| *permission)
}

/// The commands that are about IDs.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Next<'a> {
    /// `None`: one ID, and not in an array.
    pub(super) count: Option<u32>,
    pub(super) scope: &'a str,
    pub(super) shape: Shape,
}

impl<'a> Next<'a> {
    /// Reads `ID.NEXT [count] [SCOPE s] [AS INT|STR]` after its name.
    pub(super) fn parse(words: &[&'a [u8]]) -> Result<Self, ApiError> {
        let mut next = Self { count: None, scope: "", shape: Shape::Text };
        let mut words = words;
        if let [first, rest @ ..] = words
            && !is(first, "SCOPE")
            && !is(first, "AS")
        {
            next.count = Some(parse_count(first)?);
            words = rest;
        }
        loop {
            words = match words {
                [] => return Ok(next),
                [name, value, rest @ ..] if is(name, "SCOPE") => {
                    next.scope = text(value)?;
                    rest
                }
                [name, value, rest @ ..] if is(name, "AS") && is(value, "INT") => {
                    next.shape = Shape::Integer;
                    rest
                }
                [name, value, rest @ ..] if is(name, "AS") && is(value, "STR") => {
                    next.shape = Shape::Text;
                    rest
                }
                _ => return Err(invalid("write ID.NEXT [count] [SCOPE s] [AS INT|STR]")),
            };
        }
    }
}

/// Whether a word is a keyword, in whatever case.
#[inline]
pub(super) fn is(word: &[u8], keyword: &str) -> bool {
    word.eq_ignore_ascii_case(keyword.as_bytes())
}

pub(super) fn text(word: &[u8]) -> Result<&str, ApiError> {
    std::str::from_utf8(word).map_err(|_| invalid("an argument is not UTF-8"))
}

pub(super) fn invalid(why: impl std::fmt::Display) -> ApiError {
    ApiError::new(Reason::InvalidArgument, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next(words: &str) -> Result<(Option<u32>, &str, Shape), Reason> {
        let words: Vec<&[u8]> = words.split_ascii_whitespace().map(str::as_bytes).collect();
        let next = Next::parse(&words).map_err(|error| error.reason)?;
        Ok((next.count, next.scope, next.shape))
    }

    #[test]
    fn options_come_in_any_order_and_case() {
        assert_eq!(next(""), Ok((None, "", Shape::Text)));
        assert_eq!(next("7"), Ok((Some(7), "", Shape::Text)));
        assert_eq!(next("7 as int scope orders"), Ok((Some(7), "orders", Shape::Integer)));
        assert_eq!(next("SCOPE AS AS STR"), Ok((None, "AS", Shape::Text)));
    }

    #[test]
    fn nonsense_is_refused() {
        for words in ["x", "7 8", "AS", "AS FLOAT", "SCOPE", "7 SCOPE a b", "1e3"] {
            assert_eq!(next(words), Err(Reason::InvalidArgument), "{words}");
        }
        assert_eq!(next("-1"), Err(Reason::CountOutOfRange));
    }
}
