//! The RESP parser: commands in a stream of bytes.

use std::ops::Range;

use crate::net::tls::HANDSHAKE;

/// Arguments of one command: ours have at most a handful; tools ask about a few hundred names.
const ARGUMENTS_MAX: usize = 1024;
/// The same before a key was shown: HELLO with all its options has eight.
const STRANGE_ARGUMENTS_MAX: usize = 16;
/// Bytes of a command before a key was shown: a key has less than a hundred.
const STRANGE_BYTES_MAX: usize = 4096;
/// Bytes of a line: a length, or an inline command typed by hand.
const LINE_BYTES_MAX: usize = 4096;

/// Why a stream cannot be read any further.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ProtocolError(pub(super) &'static str);

/// Where the arguments of a command are in the bytes that were read.
pub(super) type Arguments = Vec<Range<usize>>;

/// What a command may have.
#[derive(Clone, Copy, Debug)]
pub(super) struct FrameLimits {
    /// Bytes with all arguments.
    bytes: usize,
    arguments: usize,
}

impl FrameLimits {
    /// For those who may send commands of so many bytes.
    pub(super) const fn bytes(bytes: usize) -> Self {
        Self { bytes, arguments: ARGUMENTS_MAX }
    }

    /// The same before they have shown a key.
    pub(super) fn of_unauthenticated(self) -> Self {
        Self { bytes: self.bytes.min(STRANGE_BYTES_MAX), arguments: STRANGE_ARGUMENTS_MAX }
    }
}

/// Finds the first command. Gives how many bytes it takes, or `None` if it is not complete yet.
pub(super) fn parse(
    bytes: &[u8],
    arguments: &mut Arguments,
    most: FrameLimits,
) -> Result<Option<usize>, ProtocolError> {
    arguments.clear();
    match bytes.first() {
        None => Ok(None),
        Some(b'*') => parse_array(bytes, arguments, most),
        Some(&HANDSHAKE) => Err(ProtocolError("the client speaks TLS, and this port does not")),
        Some(_) => parse_inline(bytes, arguments, most),
    }
}

fn parse_array(
    bytes: &[u8],
    arguments: &mut Arguments,
    most: FrameLimits,
) -> Result<Option<usize>, ProtocolError> {
    let Some((count, mut at)) = number(bytes, 1, "invalid multibulk length")? else {
        return Ok(None);
    };
    // A count of nothing is no command, as with Redis.
    if count <= 0 {
        return Ok(Some(at));
    }
    let count = usize::try_from(count).ok().filter(|count| *count <= most.arguments);
    let count = count.ok_or(ProtocolError("too many arguments"))?;
    for _ in 0..count {
        match bytes.get(at) {
            None => return Ok(None),
            Some(b'$') => {}
            Some(_) => return Err(ProtocolError("expected '$'")),
        }
        let Some((length, start)) = number(bytes, at + 1, "invalid bulk length")? else {
            return Ok(None);
        };
        let length = usize::try_from(length).map_err(|_| ProtocolError("invalid bulk length"))?;
        if length > most.bytes || start + length > most.bytes {
            return Err(ProtocolError("the command is too long"));
        }
        let end = start + length;
        match bytes.get(end..end + 2) {
            Some(b"\r\n") => {}
            Some(_) => return Err(ProtocolError("an argument is not as long as it says")),
            None => return Ok(None),
        }
        arguments.push(start..end);
        at = end + 2;
    }
    Ok(Some(at))
}

/// A number up to the end of its line, and where the next line begins.
fn number(
    bytes: &[u8],
    from: usize,
    what: &'static str,
) -> Result<Option<(i64, usize)>, ProtocolError> {
    // FrameLimits numbers have one digit.
    if let Some([digit @ b'0'..=b'9', b'\r', b'\n']) = bytes.get(from..from + 3) {
        return Ok(Some((i64::from(digit - b'0'), from + 3)));
    }
    let rest = bytes.get(from..).unwrap_or_default();
    let Some(end) = memchr::memchr(b'\n', rest) else {
        return if rest.len() > LINE_BYTES_MAX { Err(ProtocolError(what)) } else { Ok(None) };
    };
    let line = rest[..end].strip_suffix(b"\r").ok_or(ProtocolError(what))?;
    let digits = line.strip_prefix(b"-").unwrap_or(line);
    if digits.is_empty() || digits.len() > 18 || !digits.iter().all(u8::is_ascii_digit) {
        return Err(ProtocolError(what));
    }
    let value = digits.iter().fold(0, |value, digit| value * 10 + i64::from(digit - b'0'));
    let value = if digits.len() < line.len() { -value } else { value };
    Ok(Some((value, from + end + 1)))
}

/// Words on a line, for people at a terminal.
fn parse_inline(
    bytes: &[u8],
    arguments: &mut Arguments,
    most: FrameLimits,
) -> Result<Option<usize>, ProtocolError> {
    let Some(end) = memchr::memchr(b'\n', bytes) else {
        let is_endless = bytes.len() > LINE_BYTES_MAX;
        return if is_endless { Err(ProtocolError("too big inline request")) } else { Ok(None) };
    };
    if end > LINE_BYTES_MAX {
        return Err(ProtocolError("too big inline request"));
    }
    let mut start = None;
    for (at, byte) in bytes[..=end].iter().enumerate() {
        match (byte.is_ascii_whitespace(), start) {
            (false, None) => start = Some(at),
            (true, Some(from)) => {
                arguments.push(from..at);
                start = None;
            }
            _ => {}
        }
    }
    if arguments.len() > most.arguments {
        return Err(ProtocolError("too many arguments"));
    }
    Ok(Some(end + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The words of a command, and the bytes it takes.
    type Found<'a> = Option<(Vec<&'a [u8]>, usize)>;

    fn words(bytes: &[u8]) -> Result<Found<'_>, ProtocolError> {
        let mut arguments = Arguments::new();
        let used = parse(bytes, &mut arguments, FrameLimits::bytes(256 * 1024))?;
        Ok(used.map(|used| (arguments.iter().map(|range| &bytes[range.clone()]).collect(), used)))
    }

    #[test]
    fn whole_commands_are_found_and_parts_are_waited_for() {
        let command = b"*2\r\n$4\r\nINCR\r\n$10\r\n0123456789\r\n";
        let expected: Vec<&[u8]> = vec![b"INCR", b"0123456789"];
        assert_eq!(words(command), Ok(Some((expected, command.len()))));
        for end in 0..command.len() {
            assert_eq!(words(&command[..end]), Ok(None), "{end}");
        }
        let expected: Vec<&[u8]> = vec![b"PING", b"hi"];
        assert_eq!(words(b"  PING \t hi \r\nmore"), Ok(Some((expected, 14))));
        assert_eq!(words(b"\r\n"), Ok(Some((vec![], 2))));
        assert_eq!(words(b"*0\r\n"), Ok(Some((vec![], 4))));
        assert_eq!(words(b"*-1\r\n"), Ok(Some((vec![], 5))));
    }

    #[test]
    fn what_cannot_be_a_command_breaks_the_stream() {
        let endless = [b'x'; LINE_BYTES_MAX + 2];
        let endless_number = [b"*".as_slice(), &[b'1'; LINE_BYTES_MAX + 2]].concat();
        let cases: [&[u8]; 15] = [
            b"\x16\x03\x01\x02",
            b"*x\r\n",
            b"*\r\n",
            b"*1\n",
            b"*1\r\n:1\r\n",
            b"*1\r\n*1\r\n$1\r\na\r\n",
            b"*1\r\n$-1\r\n",
            b"*1\r\n$x\r\n",
            b"*1\r\n$262145\r\n",
            b"*1\r\n$2\r\nabc\r\n",
            b"*1025\r\n",
            b"*99999999999999999999\r\n",
            b"*999999999999999999\r\n",
            &endless,
            &endless_number,
        ];
        for case in cases {
            assert!(words(case).is_err(), "{:?}", String::from_utf8_lossy(case));
        }
    }

    #[test]
    fn a_command_has_a_limit_in_all() {
        let mut bytes = b"*5\r\n".to_vec();
        for _ in 0..5 {
            bytes.extend_from_slice(b"$65536\r\n");
            bytes.extend(std::iter::repeat_n(b'a', 65536));
            bytes.extend_from_slice(b"\r\n");
        }
        assert_eq!(words(&bytes), Err(ProtocolError("the command is too long")));
    }
}
