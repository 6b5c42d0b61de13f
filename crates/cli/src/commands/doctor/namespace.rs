//! The namespace: whether its nodes agree with this configuration, and whether there are free workers.

use std::collections::BTreeMap;

use frazil::coord::keeper::{FirstUse, Refusal, Setup, repair_command};
use frazil::coord::rules::{RUN_AHEAD_MS, is_plainly_wrong};
use frazil::coord::time::unix_ms;
use frazil::coord::{
    Census, ErrorKind, Group, Meta, SlotCounts, SlotState, Store, keeper, neighbours,
};
use frazil::{fixed_worker, layout_mark};

use super::configuration::Case;
use super::report::Row;
use super::store::failed;
use crate::commands::place::pool_meta;
use crate::commands::workers::Pool;
use crate::words::{count, instant, printable, span};

const NAMESPACE: &str = "namespace";
/// No pool has a worker beyond this, whatever its layout: a node looks at them one by one.
const LAST_WORKER: u64 = (1 << 16) - 1;

pub(super) async fn look_at_namespace(case: &Case, store: &dyn Store) -> Vec<Row> {
    match pool_meta(store).await {
        Err(error) => vec![failed(NAMESPACE, &error)],
        Ok(Some(meta)) => {
            let mut rows = judge(case, &meta.value);
            let workers = (meta.value.first_worker, meta.value.last_worker);
            rows.extend(overlapping(case, store, workers).await);
            rows
        }
        Ok(None) => vec![missing(case, store).await],
    }
}

async fn missing(case: &Case, store: &dyn Store) -> Row {
    match store.list(Group::Workers).await {
        Err(error) => failed(NAMESPACE, &error),
        Ok(entries) if entries.is_empty() => {
            let name = case.namespace.as_str();
            Row::ok(NAMESPACE, format!("{name:?} is not there yet: the first node will create it"))
        }
        Ok(entries) => Row::fail(
            NAMESPACE,
            format!("its meta record is gone, and {} are there", count(entries.len(), "worker")),
            format!("{} with the --layout and --workers of it", case.command("store repair")),
        ),
    }
}

fn judge(case: &Case, meta: &Meta) -> Vec<Row> {
    if let Some(refusal) = setup(case).disagreement(meta) {
        return vec![Row::fail(NAMESPACE, printable(&refusal.to_string()), fix(&refusal))];
    }
    let (budget, window) = (case.effective_timing().outage_budget, meta.window_ms);
    let name = case.namespace.as_str();
    let (first, last) = (meta.first_worker, meta.last_worker);
    let seconds = window / 1000;
    let detail =
        format!("{name:?} has this layout, workers {first} to {last}, a window of {seconds} s");
    let mut rows = vec![Row::ok(NAMESPACE, detail)];
    if is_plainly_wrong(meta.quarantine, unix_ms()) {
        rows.push(Row::fail(
            NAMESPACE,
            format!("nobody uses it before {}, which is plainly wrong", instant(meta.quarantine)),
            repair_command(&case.url, Some(&case.namespace)),
        ));
    }
    if budget.as_millis() > u128::from(window) {
        rows.push(Row::warn(
            NAMESPACE,
            format!(
                "an outage budget of {} is more than the window: a node goes on for {seconds} s only",
                span(budget)
            ),
            format!("--outage-budget {seconds}s"),
        ));
    }
    rows
}

/// Other namespaces of the store that issue the same IDs.
async fn overlapping(case: &Case, store: &dyn Store, workers: (u32, u32)) -> Vec<Row> {
    let mark = layout_mark(&case.layout);
    match neighbours(store, &mark, workers).await {
        // Whoever may see its own namespace alone is set up well.
        Err(error) if error.kind() == ErrorKind::Denied => {
            vec![Row::ok(
                NAMESPACE,
                format!("other namespaces of the store cannot be seen: {error}"),
            )]
        }
        Err(error) => vec![failed(NAMESPACE, &error)],
        Ok(found) => found
            .iter()
            .map(|neighbour| Row::warn(NAMESPACE, neighbour.to_string(), "use only one of the two"))
            .collect(),
    }
}

/// What a node would agree to.
fn setup(case: &Case) -> Setup {
    let last_worker = case.layout.last_worker().min(LAST_WORKER);
    Setup {
        timing: case.effective_timing(),
        layout: layout_mark(&case.layout),
        workers: fixed_worker(&case.url).map(|number| (number, number)).or(case.workers),
        last_worker: u32::try_from(last_worker).unwrap_or(u32::MAX),
        first_use: FirstUse::AtOnce,
        holder: String::new(),
        info: BTreeMap::new(),
        favourite: None,
    }
}

fn fix(refusal: &Refusal) -> String {
    match refusal {
        Refusal::OtherLayout { there, .. } => {
            // The mark is the fingerprint and the layout's text.
            let text = there.split_once(' ').map_or(there.as_str(), |(_, text)| text);
            format!("--layout '{}'", printable(text))
        }
        Refusal::OtherWorkers { there, .. } => {
            format!("--workers {}-{}", there.0, there.1)
        }
        _ => "see frazil store show".to_owned(),
    }
}

const POOL: &str = "pool";
/// How many workers are named in a row.
const NAMED_MAX: usize = 4;

pub(super) async fn look_at_pool(case: &Case, store: &dyn Store) -> Vec<Row> {
    let now = unix_ms();
    let meta = match pool_meta(store).await {
        Err(error) => return vec![failed(POOL, &error)],
        Ok(None) => return vec![Row::skipped(POOL, "there is no namespace yet")],
        Ok(Some(meta)) => meta,
    };
    match Pool::read(store, meta, now).await {
        Err(error) => vec![failed(POOL, &error)],
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
        return Row::fail(POOL, detail, "wait until then; nodes that run go on");
    }
    // A quarantine is left when it is this near.
    if pool.meta.quarantine > now.saturating_add(RUN_AHEAD_MS) {
        let until = instant(pool.meta.quarantine);
        let detail = format!("the namespace is in quarantine until {until}");
        return Row::fail(POOL, detail, "wait until then; nodes that run go on");
    }
    let more = "stop nodes that are not needed, or run fewer lanes";
    if tally.free + tally.never_used == 0 {
        let holders = named(pool, SlotState::Held);
        if size == 1 && tally.held == 1 {
            let detail = format!("its only worker is held ({holders}): no other node gets one");
            return Row::warn(POOL, detail, "nothing, if that node is the one; else stop it");
        }
        return Row::fail(POOL, format!("no worker is free, {counted} ({holders})"), more);
    }
    let census = Census {
        held: tally.held,
        blocked: tally.unusable() - tally.poisoned,
        poisoned: tally.poisoned,
        next_floor: None,
    };
    if (keeper::Pool { size, census }).is_crowded() {
        return Row::warn(POOL, format!("more than half is in use, {counted}"), more);
    }
    Row::ok(POOL, counted)
}

/// Workers that somebody has to repair.
fn broken(case: &Case, pool: &Pool) -> Vec<Row> {
    let SlotCounts { poisoned, lost, .. } = pool.tally;
    let mut rows = Vec::new();
    if poisoned > 0 {
        rows.push(Row::warn(
            POOL,
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
            POOL,
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
