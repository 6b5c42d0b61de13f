//! The layout under which generators, not caps, are measured.

use frazil_id::Layout;

/// A 22-bit sequence allows four IDs a nanosecond, more than any generator issues one by one; the
/// 41 bits of time are real, since a generator without time skips most of its work.
///
/// # Panics
/// Never: the text is a layout.
#[must_use]
pub fn wide_layout() -> Layout {
    "time:41 worker:1 sequence:22 @2024-01-01T00:00:00Z".parse().expect("the text is a layout")
}
