//! All workers of a namespace as a user sees them.

use frazil::coord::internal::{Guard, PoolView, SlotCounts};
use frazil::coord::{Error, Meta, Store, UnixMs, Versioned};

use super::view::View;
use crate::output::say;
use crate::words::instant;

/// The workers of a namespace at a moment.
pub(crate) struct Pool {
    pub(crate) meta: Meta,
    /// Why and until when the store lets nobody new in.
    pub(crate) guard: Option<Guard>,
    /// How many of them are good for what.
    pub(crate) tally: SlotCounts,
    /// Every worker that was ever used, by number.
    pub(crate) views: Vec<View>,
}

impl Pool {
    pub(crate) async fn read(
        store: &dyn Store,
        meta: Versioned<Meta>,
        now: UnixMs,
    ) -> Result<Self, Error> {
        let PoolView { meta, guard, counts: tally, workers, .. } =
            PoolView::read(store, meta, now).await?;
        Ok(Self { meta, guard, tally, views: workers.into_iter().map(View::from).collect() })
    }

    /// Says what keeps new holders out of all workers.
    pub(crate) fn tell_of_guard(&self) {
        if let Some(Guard { until, reason }) = &self.guard {
            say(format_args!("no worker is leased before {}: {reason}", instant(*until)));
        }
    }
}
