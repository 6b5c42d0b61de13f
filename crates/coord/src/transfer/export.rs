//! An export: lines of JSON, of which the first is meta and the last says how many records there were.

use std::fmt;
use std::io::{self, BufRead, Read};

use serde::{Deserialize, Serialize};

use crate::error::write_causes;
use crate::record::{FORMAT, Meta, Record};
use crate::slot::{Group, Slot};

/// A line of an export is one record; what is longer is something else.
const LINE_BYTES_MAX: u64 = 1 << 20;

/// One line of an export: meta first, then the records, then how many they were.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ExportLine {
    /// What all holders agree on.
    Meta(Meta),
    /// A slot that was ever held.
    Record {
        /// Its group.
        group: Group,
        /// Its name.
        name: String,
        /// Lost records are exported too: whoever imports must not take them for new.
        record: Option<Record>,
    },
    /// The last line: an export that was cut off has none.
    End {
        /// How many records there are.
        records: usize,
    },
}

/// A whole export, as it was read.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Export {
    /// What all holders agree on.
    pub meta: Meta,
    /// The slots, with their records unless those are lost.
    pub records: Vec<(Slot, Option<Record>)>,
}

/// Why something is no export.
#[derive(Debug)]
#[non_exhaustive]
pub enum ExportError {
    /// It cannot be read.
    Unreadable(io::Error),
    /// A line makes no sense.
    Line {
        /// Which, from 1.
        number: usize,
        /// Why.
        cause: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The first line is missing.
    NoMeta,
    /// The last line is missing, or others are: what is missing may be the record of a worker that is
    /// still held.
    CutOff {
        /// How many records are there.
        records: usize,
    },
    /// A newer version wrote it.
    NewerFormat,
    /// Its range of workers is empty.
    NoWorkers,
}

impl Export {
    /// Reads all of it, and checks that it is whole.
    ///
    /// # Errors
    /// It cannot be read, or is no whole export.
    pub fn read(input: &mut dyn BufRead) -> Result<Self, ExportError> {
        let (mut meta, mut end) = (None, None);
        let mut records = Vec::new();
        for number in 1.. {
            let mut text = Vec::new();
            let read = input.take(LINE_BYTES_MAX).read_until(b'\n', &mut text);
            read.map_err(ExportError::Unreadable)?;
            if text.is_empty() {
                break;
            }
            let wrong = |cause| ExportError::Line { number, cause };
            match serde_json::from_slice(&text).map_err(|error| wrong(error.into()))? {
                _ if end.is_some() => return Err(wrong("something after the end".into())),
                ExportLine::End { records } => end = Some(records),
                ExportLine::Meta(_) if meta.is_some() => {
                    return Err(wrong("a second meta record".into()));
                }
                ExportLine::Meta(read) => meta = Some(read),
                ExportLine::Record { group, name, record } => {
                    let slot = Slot::named(group, &name);
                    records.push((slot.map_err(|error| wrong(error.into()))?, record));
                }
            }
        }
        let meta: Meta = meta.ok_or(ExportError::NoMeta)?;
        if end != Some(records.len()) {
            return Err(ExportError::CutOff { records: records.len() });
        }
        if meta.format > FORMAT {
            return Err(ExportError::NewerFormat);
        }
        if meta.workers().is_empty() {
            return Err(ExportError::NoWorkers);
        }
        Ok(Self { meta, records })
    }

    /// How many slots are workers that the namespace does not lease.
    #[must_use]
    pub fn outside(&self) -> usize {
        self.records.iter().filter(|(slot, _)| self.meta.is_outside(slot)).count()
    }
}

impl Meta {
    /// Whether a slot is a worker that the namespace does not lease.
    #[must_use]
    pub fn is_outside(&self, slot: &Slot) -> bool {
        slot.number().is_some_and(|number| !self.workers().contains(&number))
    }
}

impl fmt::Display for ExportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(_) => f.write_str("the export cannot be read"),
            Self::Line { number, .. } => write!(f, "line {number} of the export"),
            Self::NoMeta => {
                f.write_str("the export has no meta record: give what frazil store export printed")
            }
            Self::CutOff { records } => {
                let ending = if *records == 1 { "" } else { "s" };
                write!(f, "the export is cut off after {records} record{ending}: export again")
            }
            Self::NewerFormat => f.write_str(
                "the export was written by a newer version of frazil: import it with that",
            ),
            Self::NoWorkers => f.write_str("the export's range of workers is empty: export again"),
        }?;
        if f.alternate() { write_causes(f, self) } else { Ok(()) }
    }
}

impl std::error::Error for ExportError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Unreadable(error) => Some(error),
            Self::Line { cause, .. } => Some(&**cause),
            _ => None,
        }
    }
}
