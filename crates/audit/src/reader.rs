//! IDs in files: one per line, or eight bytes for each.
//!
//! ```
//! use std::ops::ControlFlow;
//!
//! use frazil_audit::Auditor;
//! use frazil_audit::reader::Form;
//! use frazil_id::{Format, Layout};
//!
//! let mut auditor = Auditor::new(&Layout::FRAZIL, 10);
//! let mut source = auditor.source("monday");
//! Form::Text(Format::Decimal).each(&mut &b"7\n8\nx\n7\n"[..], |(line, entry)| {
//!     match entry {
//!         Ok(id) => source.check(id, line),
//!         Err(malformed) => assert_eq!((line, malformed.text), (3, &b"x"[..])),
//!     }
//!     ControlFlow::Continue(())
//! })?;
//! drop(source);
//! assert_eq!(auditor.finish().duplicates, 1);
//! # Ok::<(), std::io::Error>(())
//! ```

mod binary;
mod decimal;
mod input;
mod lines;
mod malformed;

use std::io::{self, Read};
use std::ops::ControlFlow;

use frazil_id::{Format, Id};

pub use self::input::{Input, InputError};
pub use self::malformed::{Malformed, MalformedReason};

/// How IDs stand in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// One on each line, as this text. Blank lines, the CR of a CRLF and a byte order mark before the
    /// first line are skipped.
    Text(Format),
    /// Eight bytes for each, the most significant first.
    Binary,
}

/// What is taken of a file, one after the other: the line, or the number of the ID in a binary file,
/// both from 1, and what is there.
pub type Entry<'a> = (u64, Result<Id, Malformed<'a>>);

impl Form {
    /// Hands out what is in a file until it ends or the taker has enough. Reads large blocks: the input
    /// needs no buffer.
    ///
    /// # Errors
    /// The input cannot be read. What was handed out before was there.
    pub fn each(
        self,
        input: &mut dyn Read,
        take: impl FnMut(Entry<'_>) -> ControlFlow<()>,
    ) -> io::Result<()> {
        match self {
            Self::Text(format) => lines::each(input, format, take),
            Self::Binary => binary::each(input, take),
        }
    }
}
