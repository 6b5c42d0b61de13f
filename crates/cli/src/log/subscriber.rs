//! The log as `tracing` sees it.

use std::sync::PoisonError;

use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id};
use tracing::{Event, Metadata, Subscriber};

use super::Log;
use super::record::Record;

impl Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        let filter = self.filter.read().unwrap_or_else(PoisonError::into_inner);
        metadata.is_event() && *metadata.level() <= filter.level_of(metadata.target())
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(self.filter.read().unwrap_or_else(PoisonError::into_inner).highest())
    }

    fn event(&self, event: &Event<'_>) {
        let record = Record::of(event);
        let now = (self.now)().elapsed;
        let (due, is_written) = {
            let mut repeats = self.repeats();
            let due = repeats.due(now);
            (due, repeats.admit(event.metadata().callsite(), &record, now))
        };
        due.iter().for_each(|record| self.write(record));
        if is_written {
            self.write(&record);
        }
    }

    /// Spans are not enabled; whoever makes one all the same gets one that is like any other.
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}
