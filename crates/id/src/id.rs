//! The 64-bit value.

use core::fmt;
use core::ops::{Range, RangeInclusive};
use core::str::FromStr;

use crate::layout::Layout;
use crate::parts::{OutsideLayout, Parts, TimeError};
use crate::text::{Format, IdText, ParseIdError};

/// A unique, time-ordered 64-bit value. IDs of one layout sort by time; their canonical text is
/// decimal.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(transparent)]
pub struct Id(u64);

impl Id {
    /// The ID with these bits.
    #[must_use]
    pub const fn from_u64(bits: u64) -> Self {
        Self(bits)
    }

    /// The bits.
    #[must_use]
    pub const fn to_u64(self) -> u64 {
        self.0
    }

    /// Takes the ID apart.
    ///
    /// # Errors
    /// If a bit above the layout's fields is set: then the ID is of another layout.
    pub fn parts(self, layout: &Layout) -> Result<Parts, OutsideLayout> {
        layout.decode(self)
    }

    /// The instant at which the tick of the ID begins, in Unix milliseconds: what [`Id::at`] and
    /// [`Id::range`] count in.
    ///
    /// # Errors
    /// If the ID is of another layout.
    pub fn unix_ms(self, layout: &Layout) -> Result<i64, OutsideLayout> {
        Ok(layout.unix_ms(self.parts(layout)?.tick).cast_signed())
    }

    /// The lowest ID of the tick that an instant, in Unix milliseconds, falls into: every ID of an
    /// earlier tick is below it.
    ///
    /// # Errors
    /// If the instant is before the layout's epoch or after its last tick.
    pub fn at(layout: &Layout, unix_ms: i64) -> Result<Self, TimeError> {
        Ok(Self(layout.tick_at(unix_ms)? << layout.time_shift()))
    }

    /// The first and last ID that can have been issued in a stretch of Unix milliseconds, for
    /// queries such as `WHERE id BETWEEN first AND last`.
    ///
    /// IDs may be a little ahead of real time: by `Options::max_ahead`, and by seconds in a namespace that
    /// was just created. A query for what was written until now should end later than now.
    ///
    /// # Errors
    /// If the range is empty, or an end lies outside the layout's time.
    pub fn range(layout: &Layout, unix_ms: Range<i64>) -> Result<RangeInclusive<Self>, TimeError> {
        let Range { start, end } = unix_ms;
        if start >= end {
            return Err(TimeError::EmptyRange { from_ms: start, to_ms: end });
        }
        let first = Self::at(layout, start)?;
        let last_tick = layout.tick_at(end - 1)?;
        let below_tick = (1 << layout.time_shift()) - 1;
        Ok(first..=Self(last_tick << layout.time_shift() | below_tick))
    }

    /// The text in the given form.
    #[must_use]
    pub fn text(self, format: Format) -> IdText {
        format.write(self)
    }

    /// Reads a text in the given form. Only the text that [`Id::text`] writes is accepted.
    ///
    /// # Errors
    /// Says what is wrong with the text and where.
    pub fn parse(text: &str, format: Format) -> Result<Self, ParseIdError> {
        format.read(text)
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad_integral(true, "", &self.text(Format::Decimal))
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Id({self})")
    }
}

/// The hexadecimal digits of the bits, with the width and `#` of the format.
impl fmt::LowerHex for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::LowerHex::fmt(&self.0, f)
    }
}

/// The hexadecimal digits of the bits, with the width and `#` of the format.
impl fmt::UpperHex for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::UpperHex::fmt(&self.0, f)
    }
}

/// Reads the canonical decimal form.
impl FromStr for Id {
    type Err = ParseIdError;

    fn from_str(text: &str) -> Result<Self, ParseIdError> {
        Self::parse(text, Format::Decimal)
    }
}

impl From<u64> for Id {
    fn from(bits: u64) -> Self {
        Self(bits)
    }
}

impl From<Id> for u64 {
    fn from(id: Id) -> Self {
        id.0
    }
}
