//! The workers of a namespace as those outside see them.

use std::time::Duration;

use crate::error::Error;
use crate::lease::{Claim, Guard};
use crate::protocol;
use crate::record::{Meta, Record, UnixMs, Versioned};
use crate::rules::floor_of;
use crate::slot::Group;
use crate::slot_state::{SlotCounts, SlotState};
use crate::store::{Entry, Found, History, Presence, Store};

/// The workers of a namespace at a moment.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PoolView {
    /// What all its nodes agree on.
    pub meta: Meta,
    /// Why the store grants no new leases, and until when.
    pub guard: Option<Guard>,
    /// How many of them are good for what.
    pub counts: SlotCounts,
    /// Every worker that was ever used, by number.
    pub workers: Vec<WorkerView>,
}

/// One worker of them.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct WorkerView {
    /// Its number.
    pub number: u32,
    /// What it is good for.
    pub state: SlotState,
    /// Its record, unless it has none any more.
    pub record: Option<Record>,
    /// How long its holder may go on, or others have to wait.
    pub left_ms: u64,
    /// How long presence lasts without renewal, where the store counts that.
    pub expires_in: Option<Duration>,
}

/// The namespace's meta record. `None` if the namespace does not exist, or has elections but no worker
/// was ever leased in it.
///
/// # Errors
/// The store cannot be read.
pub async fn pool_meta(store: &dyn Store) -> Result<Option<Versioned<Meta>>, Error> {
    Ok(protocol::Leasing::meta(store).await?.filter(|meta| !meta.value.is_blank()))
}

impl PoolView {
    /// Reads them, and judges them by a time.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn read(
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
        let counts = SlotCounts::of(&entries, &meta.value, &judge, &look.history);
        let workers = entries.into_iter();
        let mut workers: Vec<_> =
            workers.filter_map(|entry| WorkerView::new(entry, &judge, &look.history)).collect();
        workers.sort_by_key(|worker| worker.number);
        Ok(Self { meta: meta.value, guard, counts, workers })
    }
}

impl WorkerView {
    fn new(entry: Entry, judge: &Claim, history: &History) -> Option<Self> {
        let number = entry.slot.number()?;
        let state = SlotState::of(&entry, judge, history);
        let expires_in = match entry.presence {
            Presence::Held { expires_in } => expires_in,
            Presence::Free => None,
        };
        // How long a holder may go on; otherwise how long others have to wait.
        let until = match (state, &entry.found) {
            (SlotState::Held, Found::Known(record)) => record.horizon,
            _ => floor_of(&entry.found, judge, history),
        };
        let left_ms = until.saturating_sub(judge.now);
        let record = match entry.found {
            Found::Known(record) => Some(record),
            Found::New | Found::Lost => None,
        };
        Some(Self { number, state, record, left_ms, expires_in })
    }
}
