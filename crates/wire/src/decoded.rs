//! All that an ID says.

use std::fmt::{self, Display};

use frazil_id::{Id, Layout, Parts, rfc3339};
use serde::{Serialize, Serializer};

/// An ID taken apart: one JSON object, or one line of text.
#[derive(Debug, Serialize)]
pub struct Decoded<'a> {
    id: Id,
    layout: &'a str,
    time: Time,
    unix_ms: u64,
    tick: u64,
    worker: u64,
    sequence: u64,
    parts: WorkerParts<'a>,
}

impl<'a> Decoded<'a> {
    /// The parts of an ID with the layout that they were taken by, whose text is given.
    #[must_use]
    pub fn new(id: Id, parts: Parts, layout: &'a Layout, layout_text: &'a str) -> Self {
        let unix_ms = layout.unix_ms(parts.tick);
        Self {
            id,
            layout: layout_text,
            time: Time(rfc3339::Instant::from_unix_ms(unix_ms.cast_signed())),
            unix_ms,
            tick: parts.tick,
            worker: parts.worker,
            sequence: parts.sequence,
            parts: WorkerParts { layout, worker: parts.worker },
        }
    }
}

impl Display for Decoded<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, time, worker, sequence, tick, .. } = self;
        write!(f, "{id} time={} tick={tick} worker={worker} sequence={sequence}", time.0)?;
        self.parts.iter().try_for_each(|(name, value)| write!(f, " {name}:{value}"))
    }
}

#[derive(Debug)]
struct Time(rfc3339::Instant);

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

/// The named parts of a worker; none if the layout does not split it.
#[derive(Debug)]
struct WorkerParts<'a> {
    layout: &'a Layout,
    worker: u64,
}

impl WorkerParts<'_> {
    fn iter(&self) -> impl Iterator<Item = (&str, u64)> {
        let named = self.layout.has_named_parts().then(|| self.layout.split_worker(self.worker));
        named.into_iter().flatten()
    }
}

impl Serialize for WorkerParts<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}
