//! The beginning of an HTTP/2 connection, as far as it is watched before the library is given it:
//! a connection of the library holds some twenty kilobytes, even if nothing is ever called on it.

use super::{FRAME_BYTES_MAX, STREAM_WINDOW, head_bytes_max};
use crate::config::Limits;

/// What every client sends first.
pub(super) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Bytes before the payload of a frame: its length, kind, flags and stream (RFC 9113, section 4.1).
const FRAME_HEAD_BYTES: usize = 9;

/// Kinds of frames.
const HEADERS: u8 = 1;
const PRIORITY: u8 = 2;
const SETTINGS: u8 = 4;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;

/// The flag of the frame that ends a head.
const END_HEADERS: u8 = 4;

/// How much of its beginning a client has sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Beginning {
    /// Not all of the preface.
    Preface,
    /// The preface, and not yet the whole head of a call.
    Greeted,
    /// What the library must look at: the head of a call, or something else than a head.
    Called,
}

impl Beginning {
    pub(super) fn of(bytes: &[u8]) -> Self {
        let Some(mut rest) = bytes.strip_prefix(PREFACE) else {
            return if PREFACE.starts_with(bytes) { Self::Preface } else { Self::Called };
        };
        while let Some((head, after)) = rest.split_first_chunk::<FRAME_HEAD_BYTES>() {
            let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
            let (kind, flags) = (head[3], head[4]);
            let is_waited_for =
                matches!(kind, HEADERS | CONTINUATION | PRIORITY | SETTINGS | WINDOW_UPDATE);
            if !is_waited_for || length > FRAME_BYTES_MAX as usize {
                return Self::Called;
            }
            let Some(next) = after.get(length..) else { break };
            if matches!(kind, HEADERS | CONTINUATION) && flags & END_HEADERS != 0 {
                return Self::Called;
            }
            rest = next;
        }
        Self::Greeted
    }
}

/// The frame of settings that the library would write first. Many clients call nothing before they
/// have it.
pub(super) fn settings(limits: &Limits) -> Vec<u8> {
    // By their numbers (RFC 9113, section 6.5.2), in the library's order.
    let values = [
        (3_u16, limits.max_streams),
        (4, STREAM_WINDOW),
        (5, FRAME_BYTES_MAX),
        (6, head_bytes_max(limits)),
    ];
    let mut frame = vec![0, 0, 6 * 4, SETTINGS, 0, 0, 0, 0, 0];
    for (name, value) in values {
        frame.extend(name.to_be_bytes());
        frame.extend(value.to_be_bytes());
    }
    frame
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, flags: u8, length: u8) -> Vec<u8> {
        let mut frame = vec![0, 0, length, kind, flags, 0, 0, 0, 1];
        frame.resize(FRAME_HEAD_BYTES + usize::from(length), 7);
        frame
    }

    #[test]
    fn a_head_is_waited_for_until_its_last_byte() {
        let beginning = [
            frame(SETTINGS, 0, 12),
            frame(WINDOW_UPDATE, 0, 4),
            frame(SETTINGS, 1, 0),
            frame(PRIORITY, 0, 5),
            frame(HEADERS, 0, 30),
            frame(CONTINUATION, 0, 30),
            frame(CONTINUATION, END_HEADERS, 30),
        ];
        let bytes = [PREFACE, &beginning.concat()].concat();
        for length in 0..bytes.len() {
            let expected = match length < PREFACE.len() {
                true => Beginning::Preface,
                false => Beginning::Greeted,
            };
            assert_eq!(Beginning::of(&bytes[..length]), expected, "{length}");
        }
        assert_eq!(Beginning::of(&bytes), Beginning::Called);
    }

    #[test]
    fn what_is_no_beginning_of_a_head_is_for_the_library() {
        let long = [&[0, 0x40, 1, HEADERS][..], &[0; 5]].concat();
        let after_preface = [frame(0, 0, 1), frame(6, 0, 8), frame(HEADERS, END_HEADERS, 3), long];
        for frame in after_preface {
            assert_eq!(Beginning::of(&[PREFACE, &frame].concat()), Beginning::Called, "{frame:?}");
        }
        for other in [&b"GET / HTTP/1.1\r\n"[..], b"\x16\x03\x01", b"PRI * HTTP/1"] {
            assert_eq!(Beginning::of(other), Beginning::Called, "{other:?}");
        }
    }
}
