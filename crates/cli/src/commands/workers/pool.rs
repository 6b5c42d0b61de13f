//! All workers of a namespace as a user sees them.

use frazil::coord::{
    Claim, Error, Group, Guard, Meta, SlotCounts, Store, UnixMs, Versioned, protocol,
};

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
        let entries = store.list(Group::Workers).await?;
        let look = store.read(&[]).await?;
        let guard = protocol::guard(&look).filter(|guard| guard.until > now);
        let mut judge = Claim::to_judge(&meta, now);
        // Whatever keeps everybody out is a quarantine to those outside.
        judge.quarantine = judge.quarantine.max(guard.as_ref().map_or(0, |guard| guard.until));
        let tally = SlotCounts::of(&entries, &meta.value, &judge, &look.history);
        let views = entries.into_iter();
        let mut views: Vec<_> =
            views.filter_map(|entry| View::new(entry, &judge, &look.history)).collect();
        views.sort_by_key(|view| view.worker);
        Ok(Self { meta: meta.value, guard, tally, views })
    }

    /// Says what keeps new holders out of all workers.
    pub(crate) fn tell_of_guard(&self) {
        if let Some(Guard { until, reason }) = &self.guard {
            say(format_args!("no worker is leased before {}: {reason}", instant(*until)));
        }
    }
}
