//! Parts of a file that are no IDs.

use std::fmt;

use frazil_id::ParseIdError;

/// A line that is no ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Malformed<'a> {
    /// What stands there, or its beginning.
    pub text: &'a [u8],
    /// Why it is no ID.
    pub why: MalformedReason,
}

/// Why a line is no ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MalformedReason {
    /// It is no text of an ID.
    NotAnId(ParseIdError),
    /// It is longer than any text of an ID.
    LineTooLong,
    /// A binary file ends within an ID.
    CutOff,
}

impl fmt::Display for MalformedReason {
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
