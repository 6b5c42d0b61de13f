//! The meaning of an ID's bits.

mod facts;
mod presets;
mod text;

use core::fmt;

pub use self::presets::PRESETS;

/// Worker parts a layout may name. Region, zone, host and process is the most seen in the wild.
const PARTS_MAX: usize = 4;
/// Letters in the name of a worker part.
const NAME_MAX: usize = 16;
/// 9999-12-31T23:59:59.999Z: an epoch must have an RFC 3339 form.
const EPOCH_MS_MAX: u64 = 253_402_300_799_999;
/// One day: a coarser tick makes IDs that say nothing.
const TICK_MS_MAX: u32 = 86_400_000;

/// The epoch, the tick length and the bit fields of an ID, from the most significant bit: time
/// first, then worker and sequence in either order.
///
/// A layout is checked once, in [`Layout::new`]; everything else trusts it.
///
/// ```
/// use frazil_id::Layout;
///
/// let layout: Layout = "time:41 region:3 node:7 sequence:12 @2024-01-01T00:00:00Z tick:1ms".parse()?;
/// assert_eq!(layout.workers(), 1024);
/// assert_eq!(layout.ids_per_second(), 4_096_000);
/// # Ok::<(), frazil_id::LayoutError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Layout {
    epoch_ms: u64,
    tick_ms: u32,
    time_bits: u32,
    worker_bits: u32,
    sequence_bits: u32,
    worker_first: bool,
    parts: [Part; PARTS_MAX],
    parts_len: usize,
}

impl Layout {
    /// Describes IDs by their fields, from the most significant bit, their epoch in Unix
    /// milliseconds and the length of a tick in milliseconds.
    ///
    /// A field is a name and a number of bits. `time` comes first; `sequence` is the counter
    /// within a tick; every other name is a part of the worker, and the parts stand together.
    ///
    /// # Errors
    /// Names the first rule that the description breaks.
    pub const fn new(
        fields: &[(&str, u32)],
        epoch_ms: u64,
        tick_ms: u32,
    ) -> Result<Self, LayoutError> {
        let mut layout = Self {
            epoch_ms,
            tick_ms,
            time_bits: 0,
            worker_bits: 0,
            sequence_bits: 0,
            worker_first: true,
            parts: [Part::NONE; PARTS_MAX],
            parts_len: 0,
        };
        let mut i = 0;
        while i < fields.len() {
            let (name, bits) = fields[i];
            let after_sequence = layout.sequence_bits > 0;
            if bits == 0 || bits > 64 {
                return Err(LayoutError::FieldBits { bits });
            }
            if is(name, "time") {
                if i > 0 {
                    return Err(LayoutError::TimeNotFirst);
                }
                layout.time_bits = bits;
            } else if is(name, "sequence") {
                if after_sequence {
                    return Err(LayoutError::RepeatedField);
                }
                layout.sequence_bits = bits;
            } else {
                if after_sequence && layout.parts_len > 0 && layout.worker_first {
                    return Err(LayoutError::WorkerSplit);
                }
                layout.worker_first = !after_sequence;
                if let Err(error) = layout.add_part(name, bits) {
                    return Err(error);
                }
            }
            i += 1;
        }
        layout.checked()
    }

    const fn add_part(&mut self, name: &str, bits: u32) -> Result<(), LayoutError> {
        if self.parts_len == PARTS_MAX {
            return Err(LayoutError::TooManyParts);
        }
        let part = match Part::new(name, bits) {
            Ok(part) => part,
            Err(error) => return Err(error),
        };
        let mut i = 0;
        while i < self.parts_len {
            if is(self.parts[i].name(), name) {
                return Err(LayoutError::RepeatedField);
            }
            i += 1;
        }
        self.parts[self.parts_len] = part;
        self.parts_len += 1;
        self.worker_bits += bits;
        Ok(())
    }

    const fn checked(self) -> Result<Self, LayoutError> {
        if self.time_bits == 0 {
            return Err(LayoutError::NoTime);
        }
        let bits = self.bits();
        if bits > 64 {
            return Err(LayoutError::TooManyBits { bits });
        }
        if self.tick_ms == 0 || self.tick_ms > TICK_MS_MAX {
            return Err(LayoutError::Tick { tick_ms: self.tick_ms });
        }
        if self.epoch_ms > EPOCH_MS_MAX {
            return Err(LayoutError::Epoch { epoch_ms: self.epoch_ms });
        }
        let lifetime_ms = (self.tick_ms as u128) << self.time_bits;
        if lifetime_ms + self.epoch_ms as u128 > i64::MAX as u128 {
            return Err(LayoutError::TooLong);
        }
        Ok(self)
    }

    /// The instant of tick 0, in Unix milliseconds.
    #[must_use]
    pub const fn epoch_ms(&self) -> u64 {
        self.epoch_ms
    }

    /// The length of a tick in milliseconds.
    #[must_use]
    pub const fn tick_ms(&self) -> u32 {
        self.tick_ms
    }

    /// Bits of the time field.
    #[must_use]
    pub const fn time_bits(&self) -> u32 {
        self.time_bits
    }

    /// Bits of the whole worker, all its parts together.
    #[must_use]
    pub const fn worker_bits(&self) -> u32 {
        self.worker_bits
    }

    /// Bits of the sequence field.
    #[must_use]
    pub const fn sequence_bits(&self) -> u32 {
        self.sequence_bits
    }

    /// Bits that an ID of this layout uses; those above are zero.
    #[must_use]
    pub const fn bits(&self) -> u32 {
        self.time_bits + self.worker_bits + self.sequence_bits
    }

    /// The fields from the most significant bit, with their names and bits.
    pub fn fields(&self) -> impl Iterator<Item = (&str, u32)> {
        let sequence = (self.sequence_bits > 0).then_some(("sequence", self.sequence_bits));
        let (before, after) = if self.worker_first { (None, sequence) } else { (sequence, None) };
        core::iter::once(("time", self.time_bits))
            .chain(before)
            .chain(self.worker_parts().iter().map(|part| (part.name(), part.bits())))
            .chain(after)
    }

    /// The parts of the worker, from the most significant bit. One part called `worker` is a
    /// worker that is not split.
    #[must_use]
    pub fn worker_parts(&self) -> &[Part] {
        &self.parts[..self.parts_len]
    }

    /// Whether the worker is split into named parts.
    #[must_use]
    pub fn has_named_parts(&self) -> bool {
        self.parts_len > 1 || self.worker_parts().iter().any(|part| part.name() != "worker")
    }

    pub(crate) const fn time_shift(&self) -> u32 {
        self.worker_bits + self.sequence_bits
    }

    pub(crate) const fn worker_shift(&self) -> u32 {
        if self.worker_first { self.sequence_bits } else { 0 }
    }

    pub(crate) const fn sequence_shift(&self) -> u32 {
        if self.worker_first { 0 } else { self.worker_bits }
    }
}

impl fmt::Debug for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Layout({self})")
    }
}

/// A named stretch of the worker's bits, such as a region or a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Part {
    name: [u8; NAME_MAX],
    name_len: usize,
    bits: u32,
}

impl Part {
    const NONE: Self = Self { name: [0; NAME_MAX], name_len: 0, bits: 0 };

    const fn new(name: &str, bits: u32) -> Result<Self, LayoutError> {
        let from = name.as_bytes();
        // In the text form `tick:` is the length of a tick.
        let reserved = is(name, "tick");
        if reserved || from.is_empty() || from.len() > NAME_MAX || !from[0].is_ascii_lowercase() {
            return Err(LayoutError::FieldName);
        }
        let mut part = Self { name: [0; NAME_MAX], name_len: from.len(), bits };
        let mut i = 0;
        while i < from.len() {
            if !(from[i].is_ascii_lowercase() || from[i].is_ascii_digit() || from[i] == b'_') {
                return Err(LayoutError::FieldName);
            }
            part.name[i] = from[i];
            i += 1;
        }
        Ok(part)
    }

    /// The name, in lower-case letters, digits and underscores.
    #[must_use]
    pub const fn name(&self) -> &str {
        let (name, _) = self.name.split_at(self.name_len);
        match core::str::from_utf8(name) {
            Ok(name) => name,
            Err(_) => "",
        }
    }

    /// The number of bits.
    #[must_use]
    pub const fn bits(&self) -> u32 {
        self.bits
    }
}

const EPOCH_EXAMPLE: &str = "`@2024-01-01T00:00:00Z`, or Unix milliseconds as `@1704067200000`";

/// Why a layout cannot work or its text cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LayoutError {
    /// A field has no bits, or more than an ID.
    FieldBits {
        /// The bits asked for.
        bits: u32,
    },
    /// There is no time field.
    NoTime,
    /// The time field stands behind another one.
    TimeNotFirst,
    /// Two fields have one name.
    RepeatedField,
    /// The parts of the worker do not stand together.
    WorkerSplit,
    /// More worker parts than a layout may name.
    TooManyParts,
    /// A field's name is not a short lower-case word.
    FieldName,
    /// The fields do not fit into 64 bits.
    TooManyBits {
        /// Their sum.
        bits: u32,
    },
    /// The tick length is out of range.
    Tick {
        /// The length asked for.
        tick_ms: u32,
    },
    /// The epoch is out of range.
    Epoch {
        /// The epoch asked for.
        epoch_ms: u64,
    },
    /// The last tick would lie beyond what 63 bits of milliseconds can say.
    TooLong,
    /// Neither the name of a preset nor a layout's text.
    Unknown,
    /// The text has no `@` epoch.
    NoEpoch,
    /// The text after `@` is not a time.
    EpochText,
    /// The text after `tick:` is not a length.
    TickText,
    /// A word of the text is not `name:bits`.
    FieldText,
}

impl fmt::Display for LayoutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FieldBits { bits } => {
                write!(f, "a field of {bits} bits cannot work: give each field 1 to 64 bits")
            }
            Self::NoTime => f.write_str("there is no time field: start with `time:BITS`"),
            Self::TimeNotFirst => {
                f.write_str("`time` must be the first field, so that IDs sort by time")
            }
            Self::RepeatedField => f.write_str("a field is named twice: name each one once"),
            Self::WorkerSplit => f.write_str(
                "the parts of the worker are apart: put `sequence` before or after all of them",
            ),
            Self::TooManyParts => {
                write!(f, "the worker has more than {PARTS_MAX} parts: join some of them")
            }
            Self::FieldName => write!(
                f,
                "a field name must be 1 to {NAME_MAX} lower-case letters, digits or underscores, \
                 a letter first, and not `tick`"
            ),
            Self::TooManyBits { bits } => {
                write!(f, "the fields take {bits} bits and an ID has 64: shorten them")
            }
            Self::Tick { tick_ms } => {
                write!(f, "a tick of {tick_ms} ms cannot work: use 1 to {TICK_MS_MAX} ms")
            }
            Self::Epoch { epoch_ms } => {
                write!(f, "an epoch of {epoch_ms} ms is past {EPOCH_MS_MAX}, the end of year 9999")
            }
            Self::TooLong => f.write_str(
                "the time field reaches past what 63 bits of milliseconds hold: use fewer time \
                 bits or a shorter tick",
            ),
            Self::Unknown => {
                f.write_str("not a layout: use ")?;
                presets::write_names(f)
            }
            Self::NoEpoch => write!(f, "the epoch is missing: add it, as {EPOCH_EXAMPLE}"),
            Self::EpochText => {
                write!(f, "the epoch after `@` is not a time: write {EPOCH_EXAMPLE}")
            }
            Self::TickText => write!(
                f,
                "the tick must be a whole number from 1 to {TICK_MS_MAX} with `ms`, or seconds \
                 with `s`, as `tick:1ms`"
            ),
            Self::FieldText => f.write_str("a field must be `name:bits`, as `time:41`"),
        }
    }
}

impl core::error::Error for LayoutError {}

const fn is(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    if a.len() != b.len() {
        return false;
    }
    let mut i = 0;
    while i < a.len() {
        if a[i] != b[i] {
            return false;
        }
        i += 1;
    }
    true
}
