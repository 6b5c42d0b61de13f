//! Files with one ID per line.

use std::io::{self, Read};
use std::ops::ControlFlow;

use frazil_id::{Format, Id, ParseIdError};

use super::malformed::{Malformed, MalformedReason};
use super::{Entry, decimal};

/// Bytes read at once.
const BLOCK_BYTES: usize = 262_144;
/// Bytes of a line, its end included. The longest text of an ID has 20; whatever is longer is not
/// kept.
const LINE_MAX: usize = 256;
/// What some editors write before a text in UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Hands out the lines that are not empty, until the input ends or the taker has enough.
pub(super) fn each(
    input: &mut dyn Read,
    format: Format,
    take: impl FnMut(Entry<'_>) -> ControlFlow<()>,
) -> io::Result<()> {
    let mut block = vec![0; BLOCK_BYTES];
    let mut lines = Lines { format, take, line: 1, skips: false };
    let mut kept = read_start(input, &mut block)?;
    loop {
        let read = read_some(input, &mut block[kept..])?;
        let filled = kept + read;
        let used = match lines.take_all(&block[..filled]) {
            ControlFlow::Continue(used) => used,
            ControlFlow::Break(()) => return Ok(()),
        };
        if read == 0 {
            lines.take_last(&block[used..filled]);
            return Ok(());
        }
        block.copy_within(used..filled, 0);
        kept = filled - used;
    }
}

/// Reads enough to know whether a byte order mark is there, which is no part of the first line.
fn read_start(input: &mut dyn Read, block: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < BYTE_ORDER_MARK.len() {
        match read_some(input, &mut block[filled..BYTE_ORDER_MARK.len()])? {
            0 => break,
            read => filled += read,
        }
    }
    let is_mark = &block[..filled] == BYTE_ORDER_MARK;
    Ok(if is_mark { 0 } else { filled })
}

fn read_some(input: &mut dyn Read, block: &mut [u8]) -> io::Result<usize> {
    loop {
        match input.read(block) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            read => return read,
        }
    }
}

struct Lines<T> {
    format: Format,
    take: T,
    line: u64,
    /// Whether this is a line of which the beginning was told to be too long.
    skips: bool,
}

impl<T: FnMut(Entry<'_>) -> ControlFlow<()>> Lines<T> {
    /// Takes all whole lines, and tells how many bytes they are. What is left is less than a block.
    fn take_all(&mut self, bytes: &[u8]) -> ControlFlow<(), usize> {
        let mut at = 0;
        loop {
            let rest = &bytes[at..];
            if self.format == Format::Decimal
                && !self.skips
                && let Some((bits, length)) = decimal::line(rest)
            {
                (self.take)((self.line, Ok(Id::from_u64(bits))))?;
                self.line += 1;
                at += length;
                continue;
            }
            let Some(end) = rest.iter().position(|byte| *byte == b'\n') else { break };
            if !self.skips {
                self.take_one(&rest[..end])?;
            }
            self.skips = false;
            self.line += 1;
            at += end + 1;
        }
        let rest = &bytes[at..];
        if rest.len() < LINE_MAX && !self.skips {
            return ControlFlow::Continue(at);
        }
        if !self.skips {
            self.skips = true;
            self.take_one(rest)?;
        }
        ControlFlow::Continue(bytes.len())
    }

    /// Takes what stands behind the last line's end.
    fn take_last(&mut self, text: &[u8]) {
        if !self.skips {
            // The taker has no more to say: this is the end either way.
            let _ = self.take_one(text);
        }
    }

    fn take_one(&mut self, text: &[u8]) -> ControlFlow<()> {
        let text = text.strip_suffix(b"\r").unwrap_or(text);
        if text.is_empty() {
            return ControlFlow::Continue(());
        }
        let entry = if text.len() >= LINE_MAX {
            Err(MalformedReason::LineTooLong)
        } else {
            parse(text, self.format).map_err(MalformedReason::NotAnId)
        };
        (self.take)((self.line, entry.map_err(|why| Malformed { text, why })))
    }
}

fn parse(text: &[u8], format: Format) -> Result<Id, ParseIdError> {
    match str::from_utf8(text) {
        Ok(text) => Id::parse(text, format),
        Err(_) => Id::parse(&String::from_utf8_lossy(text), format),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A reader that gives so many bytes at once.
    struct Drops<'a>(&'a [u8], usize);

    impl Read for Drops<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let count = self.1.min(self.0.len()).min(buffer.len());
            buffer[..count].copy_from_slice(&self.0[..count]);
            self.0 = &self.0[count..];
            Ok(count)
        }
    }

    fn read(text: &[u8], at_once: usize) -> Vec<(u64, Result<u64, MalformedReason>)> {
        let mut entries = Vec::new();
        let read = each(&mut Drops(text, at_once), Format::Decimal, |(line, entry)| {
            entries.push((line, entry.map(Id::to_u64).map_err(|malformed| malformed.why)));
            ControlFlow::Continue(())
        });
        read.unwrap();
        entries
    }

    #[test]
    fn lines_are_the_same_however_they_come() {
        let text = b"17\n\n0\r\n18446744073709551615\nx\n7\r\n\r\n123456789012345678\n5";
        let not_x =
            Err(MalformedReason::NotAnId(ParseIdError::InvalidLetter { letter: 'x', at: 0 }));
        let expected = [
            (1, Ok(17)),
            (3, Ok(0)),
            (4, Ok(u64::MAX)),
            (5, not_x),
            (6, Ok(7)),
            (8, Ok(123_456_789_012_345_678)),
            (9, Ok(5)),
        ];
        for at_once in 1..=text.len() {
            assert_eq!(read(text, at_once), expected, "{at_once} bytes at once");
        }
    }

    #[test]
    fn a_byte_order_mark_is_no_part_of_the_first_line_and_a_mistake_elsewhere() {
        for (text, expected) in [
            (&b"\xef\xbb\xbf17\r\n18\r\n"[..], &[(1, Ok(17)), (2, Ok(18))][..]),
            (b"\xef\xbb\xbf7", &[(1, Ok(7))]),
            (b"\xef\xbb\xbf", &[]),
        ] {
            for at_once in 1..=text.len() {
                assert_eq!(read(text, at_once), expected, "{at_once} bytes at once");
            }
        }
        let elsewhere = [
            &b"\xef\xbb17\n"[..],
            b"\xef\xbb",
            b"\xef\xbb\xbf\xef\xbb\xbf17\n",
            b"\n\xef\xbb\xbf17\n",
        ];
        for text in elsewhere {
            for at_once in 1..=text.len() {
                let entries = read(text, at_once);
                assert!(matches!(entries[..], [(_, Err(_))]), "{text:?}: {entries:?}");
            }
        }
    }

    #[test]
    fn a_line_without_end_is_told_once_and_not_kept() {
        for length in [LINE_MAX - 1, LINE_MAX, LINE_MAX + 1, BLOCK_BYTES, 3 * BLOCK_BYTES + 7] {
            let mut text = b"1\n".to_vec();
            text.resize(2 + length, b'9');
            for (end, last) in [(&b"\n2\n"[..], true), (b"", false)] {
                let text = [&text[..], end].concat();
                for at_once in [100, BLOCK_BYTES] {
                    let entries = read(&text, at_once);
                    assert_eq!(entries[0], (1, Ok(1)));
                    assert!(matches!(entries[1], (2, Err(_))), "{length}");
                    assert_eq!(entries.get(2), last.then_some(&(3, Ok(2))), "{length} {at_once}");
                    assert!(entries.len() <= 3);
                }
            }
        }
    }

    #[test]
    fn a_taker_that_has_enough_is_given_no_more() {
        let mut taken = 0;
        let read = each(&mut &b"1\nx\n2\n3\n"[..], Format::Decimal, |_| {
            taken += 1;
            if taken == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        assert!(read.is_ok());
        assert_eq!(taken, 2);
    }
}
