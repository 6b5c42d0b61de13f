//! Taking IDs apart and putting them together.

use core::fmt;

use crate::id::Id;
use crate::layout::{Layout, Part};
use crate::rfc3339::Instant;

/// The fields of an ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Parts {
    /// Layout time units since the layout's epoch.
    pub tick: u64,
    /// Who issued the ID.
    pub worker: u64,
    /// The counter within the tick.
    pub sequence: u64,
}

impl Layout {
    /// Takes an ID apart.
    ///
    /// # Errors
    /// If a bit above the fields is set: then the ID is of another layout.
    pub fn decode(&self, id: Id) -> Result<Parts, OutsideLayout> {
        let bits = id.to_u64();
        let tick = bits >> self.time_shift();
        if tick > self.last_tick() {
            return Err(OutsideLayout { id, bits: self.bits() });
        }
        Ok(Parts {
            tick,
            worker: bits >> self.worker_shift() & self.last_worker(),
            sequence: bits >> self.sequence_shift() & self.last_sequence(),
        })
    }

    /// Puts an ID together.
    ///
    /// # Errors
    /// Names the first field that does not fit.
    pub fn encode(&self, parts: Parts) -> Result<Id, EncodeError> {
        let fits = |field, value, max| {
            (value <= max).then_some(value).ok_or(EncodeError::Field { field, value, max })
        };
        let tick = fits("tick", parts.tick, self.last_tick())?;
        let worker = fits("worker", parts.worker, self.last_worker())?;
        let sequence = fits("sequence", parts.sequence, self.last_sequence())?;
        Ok(Id::from_u64(
            tick << self.time_shift()
                | worker << self.worker_shift()
                | sequence << self.sequence_shift(),
        ))
    }

    /// The tick that an instant, in Unix milliseconds, falls into.
    ///
    /// # Errors
    /// If the instant is before the epoch or after the last tick.
    pub fn tick_at(&self, unix_ms: i64) -> Result<u64, TimeError> {
        let since_epoch_ms =
            u64::try_from(unix_ms).ok().and_then(|ms| ms.checked_sub(self.epoch_ms()));
        let Some(since_epoch_ms) = since_epoch_ms else {
            return Err(TimeError::BeforeEpoch { unix_ms, epoch_ms: self.epoch_ms() });
        };
        let tick = since_epoch_ms / u64::from(self.tick_ms());
        if tick > self.last_tick() {
            return Err(TimeError::AfterLast { unix_ms, last_ms: self.last_instant_ms() });
        }
        Ok(tick)
    }

    /// The instant at which a tick begins, in Unix milliseconds. A tick beyond the layout counts
    /// as the last one.
    #[must_use]
    pub fn unix_ms(&self, tick: u64) -> u64 {
        self.epoch_ms() + tick.min(self.last_tick()) * u64::from(self.tick_ms())
    }

    /// The named parts of a worker number with their values, from the most significant bit.
    pub fn split_worker(&self, worker: u64) -> impl Iterator<Item = (&str, u64)> {
        let mut below = self.worker_bits();
        self.worker_parts().iter().map(move |part| {
            below -= part.bits();
            (part.name(), worker >> below & part_max(part))
        })
    }

    /// The worker number that the named parts make; a part that is not given is 0.
    ///
    /// # Errors
    /// If a value does not fit its part, a part is given twice, or the layout has none of that name.
    pub fn join_worker<'a>(
        &self,
        values: impl IntoIterator<Item = (&'a str, u64)>,
    ) -> Result<u64, EncodeError> {
        let mut worker = 0;
        let mut given = 0;
        for (name, value) in values {
            let mut below = self.worker_bits();
            let part = self.worker_parts().iter().find(|part| {
                below -= part.bits();
                part.name() == name
            });
            let part = *part.ok_or(EncodeError::UnknownPart)?;
            let max = part_max(&part);
            if value > max {
                return Err(EncodeError::Part { part, value });
            }
            if given & max << below != 0 {
                return Err(EncodeError::RepeatedPart { part });
            }
            given |= max << below;
            worker |= value << below;
        }
        Ok(worker)
    }
}

fn part_max(part: &Part) -> u64 {
    u64::MAX >> (64 - part.bits())
}

/// An ID has bits set above the fields of the layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutsideLayout {
    id: Id,
    bits: u32,
}

impl fmt::Display for OutsideLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, bits } = self;
        let max = u64::MAX >> (64 - bits);
        write!(
            f,
            "ID {id} is above {max}, the highest of a layout with {bits} bits: name the layout that issued it"
        )
    }
}

impl core::error::Error for OutsideLayout {}

/// Why fields do not make an ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EncodeError {
    /// A value does not fit its field.
    Field {
        /// The field.
        field: &'static str,
        /// The value.
        value: u64,
        /// The highest value that fits.
        max: u64,
    },
    /// A value does not fit its part of the worker.
    Part {
        /// The part.
        part: Part,
        /// The value.
        value: u64,
    },
    /// A part of the worker is given twice.
    RepeatedPart {
        /// The part.
        part: Part,
    },
    /// The worker has no part of that name.
    UnknownPart,
}

impl fmt::Display for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut does_not_fit = |field: &str, value: u64, max: u64| {
            write!(f, "{field} {value} does not fit: the layout allows 0 to {max}")
        };
        match *self {
            Self::Field { field, value, max } => does_not_fit(field, value, max),
            Self::Part { part, value } => does_not_fit(part.name(), value, part_max(&part)),
            Self::RepeatedPart { part } => {
                write!(f, "part {:?} is given twice: give it once", part.name())
            }
            Self::UnknownPart => f.write_str("the worker has no part of that name"),
        }
    }
}

impl core::error::Error for EncodeError {}

/// An instant lies outside what a layout can say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TimeError {
    /// Before the epoch.
    BeforeEpoch {
        /// The instant asked for.
        unix_ms: i64,
        /// The layout's epoch.
        epoch_ms: u64,
    },
    /// After the last tick.
    AfterLast {
        /// The instant asked for.
        unix_ms: i64,
        /// The layout's last instant.
        last_ms: u64,
    },
    /// The end of a range is not after its start.
    EmptyRange {
        /// The start.
        from_ms: i64,
        /// The end.
        to_ms: i64,
    },
}

impl fmt::Display for TimeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |ms: i64| Instant::from_unix_ms(ms);
        match *self {
            Self::BeforeEpoch { unix_ms, epoch_ms } => write!(
                f,
                "{} is before the layout's epoch {}: use a later time or a layout with an earlier epoch",
                text(unix_ms),
                text(epoch_ms.cast_signed())
            ),
            Self::AfterLast { unix_ms, last_ms } => write!(
                f,
                "{} is after the layout's last instant {}: use an earlier time or a layout with more time bits",
                text(unix_ms),
                text(last_ms.cast_signed())
            ),
            Self::EmptyRange { from_ms, to_ms } => write!(
                f,
                "the range from {} to {} is empty: the end must be after the start",
                text(from_ms),
                text(to_ms)
            ),
        }
    }
}

impl core::error::Error for TimeError {}
