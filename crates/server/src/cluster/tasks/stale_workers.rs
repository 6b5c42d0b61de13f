//! The report of stale workers: those that nobody uses and that are not simply free.

use std::sync::Arc;

use arc_swap::ArcSwap;
use frazil::coord::internal::time::unix_ms;
use frazil::coord::internal::{Claim, SlotState};
use frazil::coord::{Entry, Error, Found, Group, History, Presence};

use crate::app::Shared;

/// Slots that are named in the log; the rest is counted.
const NAMED_MAX: usize = 5;

/// How many slots there are that somebody may want to look at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct StaleCounts {
    /// Their holder was silent for too long, and never released them: it crashed, or is cut off.
    pub(crate) lapsed: u32,
    /// A quarantine covers them.
    pub(crate) quarantined: u32,
    /// Their horizon is further ahead than any correct holder can have put it.
    pub(crate) poisoned: u32,
    /// Their record is gone.
    pub(crate) lost: u32,
}

/// What the last round found; nothing where another node looks.
#[derive(Debug, Default)]
pub(crate) struct StaleWorkers(ArcSwap<StaleCounts>);

impl StaleCounts {
    /// Each kind with its number.
    pub(crate) const fn by_kind(self) -> [(&'static str, u32); 4] {
        [
            ("lapsed", self.lapsed),
            ("quarantined", self.quarantined),
            ("poisoned", self.poisoned),
            ("lost", self.lost),
        ]
    }

    /// Counts entries, and gives those that are counted with a word for each.
    fn of<'a>(
        entries: &'a [Entry],
        judge: &Claim,
        history: &History,
    ) -> (Self, Vec<(&'a Entry, &'static str)>) {
        let (mut stale, mut named) = (Self::default(), Vec::new());
        for entry in entries {
            let (count, kind) = match SlotState::of(entry, judge, history) {
                SlotState::Quarantined => (&mut stale.quarantined, "quarantined"),
                SlotState::Poisoned => (&mut stale.poisoned, "poisoned"),
                SlotState::Lost => (&mut stale.lost, "lost"),
                _ if is_lapsed(entry) => (&mut stale.lapsed, "lapsed"),
                _ => continue,
            };
            *count += 1;
            named.push((entry, kind));
        }
        (stale, named)
    }
}

/// Whoever releases a slot erases its mark.
fn is_lapsed(entry: &Entry) -> bool {
    let Found::Known(record) = &entry.found else { return false };
    entry.presence == Presence::Free && record.nonce.is_some()
}

impl StaleWorkers {
    pub(crate) fn last(&self) -> StaleCounts {
        **self.0.load()
    }

    pub(super) fn clear(&self) {
        self.0.store(Arc::default());
    }
}

/// Looks at all workers, and says what is stale if that is not what it was.
pub(super) async fn report(shared: &Shared) -> Result<(), Error> {
    let Some(node) = shared.issuer.node() else { return Ok(()) };
    let store = node.store();
    let look = store.read(&[]).await?;
    let Some(meta) = look.meta else { return Ok(()) };
    let entries = store.list(Group::Workers).await?;
    let judge = Claim::to_judge(&meta, unix_ms());
    let (stale, named) = StaleCounts::of(&entries, &judge, &look.history);
    let before = shared.stale.0.swap(Arc::new(stale));
    if *before == stale {
        return Ok(());
    }
    let StaleCounts { lapsed, quarantined, poisoned, lost } = stale;
    if named.is_empty() {
        tracing::info!("no worker is stale any more");
        return Ok(());
    }
    let slots: Vec<String> = named.iter().take(NAMED_MAX).map(described).collect();
    tracing::warn!(
        lapsed,
        quarantined,
        poisoned,
        lost,
        slots = slots.join(", "),
        "workers are stale: see `frazil workers ls`, and `frazil workers repair` for poisoned ones"
    );
    Ok(())
}

fn described((entry, kind): &(&Entry, &'static str)) -> String {
    match &entry.found {
        Found::Known(record) => format!("{} {kind} ({})", entry.slot.name(), record.holder),
        _ => format!("{} {kind}", entry.slot.name()),
    }
}
