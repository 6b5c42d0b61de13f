//! The workers of the namespace: whether one can be had.

use frazil_coord::internal::keeper;
use frazil_coord::internal::rules::RUN_AHEAD_MS;
use frazil_coord::internal::time::unix_ms;
use frazil_coord::internal::{PoolView, SlotCounts, SlotState, pool_meta};
use frazil_coord::{Census, Store};
use frazil_wire::printable;
use frazil_wire::words::{count, instant};

use crate::check::Check;
use crate::finding::Finding;
use crate::node_settings::NodeSettings;
use crate::store::failed;

const POOL: &str = "pool";
/// How many workers are named in a row.
const NAMED_MAX: usize = 4;

/// Whether a worker can be had, and which somebody has to repair: the check `pool`.
pub fn pool<'a>(node: &'a NodeSettings, store: &'a dyn Store) -> Check<'a> {
    Box::pin(async move {
        let now = unix_ms();
        let meta = match pool_meta(store).await {
            Err(error) => return vec![failed(POOL, &error)],
            Ok(None) => return vec![Finding::skipped(POOL, "there is no namespace yet")],
            Ok(Some(meta)) => meta,
        };
        match PoolView::read(store, meta, now).await {
            Err(error) => vec![failed(POOL, &error)],
            Ok(pool) => {
                let mut rows = vec![room(&pool, now)];
                rows.extend(broken(node, &pool));
                rows
            }
        }
    })
}

/// Whether a worker can be had, and how many more.
fn room(pool: &PoolView, now: u64) -> Finding {
    let (counts, size) = (&pool.counts, pool.counts.capacity());
    let counted = format!("of {}: {counts}", count(size, "worker"));
    if let Some(guard) = &pool.guard {
        let detail =
            format!("nobody new is let in before {}: {}", instant(guard.until), guard.reason);
        return Finding::fail(POOL, detail, "wait until then; nodes that run go on");
    }
    // A quarantine is left when it is this near.
    if pool.meta.quarantine > now.saturating_add(RUN_AHEAD_MS) {
        let until = instant(pool.meta.quarantine);
        let detail = format!("the namespace is in quarantine until {until}");
        return Finding::fail(POOL, detail, "wait until then; nodes that run go on");
    }
    let more = "stop nodes that are not needed, or run fewer lanes";
    if counts.free + counts.never_used == 0 {
        let holders = named(pool, SlotState::Held);
        if size == 1 && counts.held == 1 {
            let detail = format!("its only worker is held ({holders}): no other node gets one");
            return Finding::warn(POOL, detail, "nothing, if that node is the one; else stop it");
        }
        return Finding::fail(POOL, format!("no worker is free, {counted} ({holders})"), more);
    }
    let census = Census {
        held: counts.held,
        blocked: counts.unusable() - counts.poisoned,
        poisoned: counts.poisoned,
        next_floor: None,
    };
    if (keeper::Pool { size, census }).is_crowded() {
        return Finding::warn(POOL, format!("more than half is in use, {counted}"), more);
    }
    Finding::ok(POOL, counted)
}

/// Workers that somebody has to repair.
fn broken(node: &NodeSettings, pool: &PoolView) -> Vec<Finding> {
    let SlotCounts { poisoned, lost, .. } = pool.counts;
    let mut rows = Vec::new();
    if poisoned > 0 {
        rows.push(Finding::warn(
            POOL,
            format!(
                "{} poisoned by a wrong clock ({})",
                count(poisoned, "worker"),
                named(pool, SlotState::Poisoned)
            ),
            format!(
                "{}, with the last ID that your data shows of it",
                node.command("workers repair W --last-issued ID")
            ),
        ));
    }
    if lost > 0 {
        rows.push(Finding::warn(
            POOL,
            format!(
                "{} without a record ({})",
                count(lost, "worker"),
                named(pool, SlotState::Lost)
            ),
            node.command("store repair"),
        ));
    }
    rows
}

/// The first few workers of a state, with who has or had them.
fn named(pool: &PoolView, state: SlotState) -> String {
    let mut names: Vec<String> = pool
        .workers
        .iter()
        .filter(|worker| worker.state == state)
        .map(|worker| match &worker.record {
            Some(record) => format!("{} by {}", worker.number, printable(&record.holder)),
            None => worker.number.to_string(),
        })
        .collect();
    let more = names.len().saturating_sub(NAMED_MAX);
    names.truncate(NAMED_MAX);
    if more > 0 {
        names.push(format!("{more} more in frazil workers ls"));
    }
    names.join(", ")
}
