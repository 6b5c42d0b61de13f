//! Parts of a file that are no IDs.

use std::fmt::{self, Display};

use frazil_id::ParseIdError;

use super::input::Input;
use crate::output::say;
use crate::words;

/// Complaints printed in full; a file of the wrong kind has millions.
const COMPLAINTS_MAX: u64 = 10;
/// Bytes of a line that a complaint shows.
const SHOWN_MAX: usize = 64;

/// A line that is no ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Malformed<'a> {
    /// What stands there, or its beginning.
    pub(super) text: &'a [u8],
    pub(super) why: StopReason,
}

/// Why a line is no ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StopReason {
    NotAnId(ParseIdError),
    LineTooLong,
    /// A binary file ends within an ID.
    CutOff,
}

impl Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAnId(error) => error.fmt(f),
            Self::LineTooLong => {
                f.write_str("the line is longer than any ID: write one ID per line")
            }
            Self::CutOff => {
                f.write_str("the file ends within an ID: its length is no multiple of 8")
            }
        }
    }
}

/// Tells the first and counts all.
#[derive(Debug, Default)]
pub(super) struct MalformedLines {
    count: u64,
}

impl MalformedLines {
    pub(super) fn note(&mut self, input: &Input, line: u64, malformed: &Malformed<'_>) {
        self.count += 1;
        if self.count <= COMPLAINTS_MAX {
            let Malformed { text, why } = malformed;
            let shown = String::from_utf8_lossy(&text[..text.len().min(SHOWN_MAX)]);
            let (file, shown) = (input.shown(), words::printable(&shown));
            say(format_args!("error: {file}:{line}: \"{shown}\" is not an ID: {why}"));
        }
    }

    pub(super) fn tell_rest(&self) {
        if self.count > COMPLAINTS_MAX {
            let more = words::count(self.count - COMPLAINTS_MAX, "more line");
            say(format_args!("error: {more} without an ID"));
        }
    }

    pub(super) const fn count(&self) -> u64 {
        self.count
    }
}
