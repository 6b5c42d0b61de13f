//! Does the namespace agree with what a node would be started with?

use std::collections::BTreeMap;

use frazil::coord::keeper::{FirstUse, Refusal, Setup, repair_command};
use frazil::coord::rules::is_plainly_wrong;
use frazil::coord::time::unix_ms;
use frazil::coord::{ErrorKind, Group, Meta, Store, neighbours};
use frazil::{fixed_worker, layout_mark};

use super::case::Case;
use super::reach::failed;
use super::report::Row;
use crate::commands::place::pool_meta;
use crate::words::{count, instant, printable, span};

const CHECK: &str = "namespace";
/// No pool has a worker beyond this, whatever its layout: a node looks at them one by one.
const LAST_WORKER: u64 = (1 << 16) - 1;

pub(super) async fn look(case: &Case, store: &dyn Store) -> Vec<Row> {
    match pool_meta(store).await {
        Err(error) => vec![failed(CHECK, &error)],
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
        Err(error) => failed(CHECK, &error),
        Ok(entries) if entries.is_empty() => {
            let name = case.namespace.as_str();
            Row::ok(CHECK, format!("{name:?} is not there yet: the first node will create it"))
        }
        Ok(entries) => Row::fail(
            CHECK,
            format!("its meta record is gone, and {} are there", count(entries.len(), "worker")),
            format!("{} with the --layout and --workers of it", case.command("store repair")),
        ),
    }
}

fn judge(case: &Case, meta: &Meta) -> Vec<Row> {
    if let Some(refusal) = setup(case).disagreement(meta) {
        return vec![Row::fail(CHECK, printable(&refusal.to_string()), fix(&refusal))];
    }
    let (budget, window) = (case.effective_timing().outage_budget, meta.window_ms);
    let name = case.namespace.as_str();
    let (first, last) = (meta.first_worker, meta.last_worker);
    let seconds = window / 1000;
    let detail =
        format!("{name:?} has this layout, workers {first} to {last}, a window of {seconds} s");
    let mut rows = vec![Row::ok(CHECK, detail)];
    if is_plainly_wrong(meta.quarantine, unix_ms()) {
        rows.push(Row::fail(
            CHECK,
            format!("nobody uses it before {}, which is plainly wrong", instant(meta.quarantine)),
            repair_command(&case.url, Some(&case.namespace)),
        ));
    }
    if budget.as_millis() > u128::from(window) {
        rows.push(Row::warn(
            CHECK,
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
            vec![Row::ok(CHECK, format!("other namespaces of the store cannot be seen: {error}"))]
        }
        Err(error) => vec![failed(CHECK, &error)],
        Ok(found) => found
            .iter()
            .map(|neighbour| Row::warn(CHECK, neighbour.to_string(), "use only one of the two"))
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
