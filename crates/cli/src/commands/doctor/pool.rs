//! Are there workers to be had?

use frazil::coord::rules::RUN_AHEAD_MS;
use frazil::coord::time::unix_ms;
use frazil::coord::{Census, SlotCounts, SlotState, Store, keeper};

use super::case::Case;
use super::reach::failed;
use super::report::Row;
use crate::commands::place::pool_meta;
use crate::commands::workers::Pool;
use crate::words::{count, instant, printable};

const CHECK: &str = "pool";
/// How many workers are named in a row.
const NAMED_MAX: usize = 4;

pub(super) async fn look(case: &Case, store: &dyn Store) -> Vec<Row> {
    let now = unix_ms();
    let meta = match pool_meta(store).await {
        Err(error) => return vec![failed(CHECK, &error)],
        Ok(None) => return vec![Row::skipped(CHECK, "there is no namespace yet")],
        Ok(Some(meta)) => meta,
    };
    match Pool::read(store, meta, now).await {
        Err(error) => vec![failed(CHECK, &error)],
        Ok(pool) => {
            let mut rows = vec![room(&pool, now)];
            rows.extend(broken(case, &pool));
            rows
        }
    }
}

/// Whether a worker can be had, and how many more.
fn room(pool: &Pool, now: u64) -> Row {
    let (tally, size) = (&pool.tally, pool.tally.capacity());
    let counted = format!("of {}: {tally}", count(size, "worker"));
    if let Some(guard) = &pool.guard {
        let detail =
            format!("nobody new is let in before {}: {}", instant(guard.until), guard.reason);
        return Row::fail(CHECK, detail, "wait until then; nodes that run go on");
    }
    // A quarantine is left when it is this near.
    if pool.meta.quarantine > now.saturating_add(RUN_AHEAD_MS) {
        let until = instant(pool.meta.quarantine);
        let detail = format!("the namespace is in quarantine until {until}");
        return Row::fail(CHECK, detail, "wait until then; nodes that run go on");
    }
    let more = "stop nodes that are not needed, or run fewer lanes";
    if tally.free + tally.never_used == 0 {
        let holders = named(pool, SlotState::Held);
        if size == 1 && tally.held == 1 {
            let detail = format!("its only worker is held ({holders}): no other node gets one");
            return Row::warn(CHECK, detail, "nothing, if that node is the one; else stop it");
        }
        return Row::fail(CHECK, format!("no worker is free, {counted} ({holders})"), more);
    }
    let census = Census {
        held: tally.held,
        blocked: tally.unusable() - tally.poisoned,
        poisoned: tally.poisoned,
        next_floor: None,
    };
    if (keeper::Pool { size, census }).is_crowded() {
        return Row::warn(CHECK, format!("more than half is in use, {counted}"), more);
    }
    Row::ok(CHECK, counted)
}

/// Workers that somebody has to repair.
fn broken(case: &Case, pool: &Pool) -> Vec<Row> {
    let SlotCounts { poisoned, lost, .. } = pool.tally;
    let mut rows = Vec::new();
    if poisoned > 0 {
        rows.push(Row::warn(
            CHECK,
            format!(
                "{} poisoned by a wrong clock ({})",
                count(poisoned, "worker"),
                named(pool, SlotState::Poisoned)
            ),
            format!(
                "{}, with the last ID that your data shows of it",
                case.command("workers repair W --last-issued ID")
            ),
        ));
    }
    if lost > 0 {
        rows.push(Row::warn(
            CHECK,
            format!(
                "{} without a record ({})",
                count(lost, "worker"),
                named(pool, SlotState::Lost)
            ),
            case.command("store repair"),
        ));
    }
    rows
}

/// The first few workers of a state, with who has or had them.
fn named(pool: &Pool, state: SlotState) -> String {
    let mut names: Vec<String> = pool
        .views
        .iter()
        .filter(|view| view.state == state)
        .map(|view| match &view.holder {
            Some(holder) => format!("{} by {}", view.worker, printable(holder)),
            None => view.worker.to_string(),
        })
        .collect();
    let more = names.len().saturating_sub(NAMED_MAX);
    names.truncate(NAMED_MAX);
    if more > 0 {
        names.push(format!("{more} more in frazil workers ls"));
    }
    names.join(", ")
}
