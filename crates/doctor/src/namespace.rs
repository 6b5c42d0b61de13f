//! The namespace: whether its nodes agree with these settings.

use std::collections::BTreeMap;

use frazil::{fixed_worker, layout_mark};
use frazil_coord::internal::keeper::{Setup, repair_command};
use frazil_coord::internal::rules::is_plainly_wrong;
use frazil_coord::internal::time::unix_ms;
use frazil_coord::internal::{neighbours, pool_meta};
use frazil_coord::{ErrorKind, Group, Meta, Store};
use frazil_coord::{FirstUse, Refusal};
use frazil_wire::printable;
use frazil_wire::words::{count, instant, span};

use crate::check::Check;
use crate::finding::Finding;
use crate::node_settings::NodeSettings;
use crate::store::failed;

const NAMESPACE: &str = "namespace";
/// No pool has a worker beyond this, whatever its layout: a node looks at them one by one.
const LAST_WORKER: u64 = (1 << 16) - 1;

/// Whether the nodes of the namespace agree with these settings: the check `namespace`.
pub fn namespace<'a>(node: &'a NodeSettings, store: &'a dyn Store) -> Check<'a> {
    Box::pin(async move {
        match pool_meta(store).await {
            Err(error) => vec![failed(NAMESPACE, &error)],
            Ok(Some(meta)) => {
                let mut rows = judge(node, &meta.value);
                let workers = (meta.value.first_worker, meta.value.last_worker);
                rows.extend(overlapping(node, store, workers).await);
                rows
            }
            Ok(None) => vec![missing(node, store).await],
        }
    })
}

async fn missing(node: &NodeSettings, store: &dyn Store) -> Finding {
    match store.list(Group::Workers).await {
        Err(error) => failed(NAMESPACE, &error),
        Ok(entries) if entries.is_empty() => {
            let name = node.namespace.as_str();
            Finding::ok(
                NAMESPACE,
                format!("{name:?} is not there yet: the first node will create it"),
            )
        }
        Ok(entries) => Finding::fail(
            NAMESPACE,
            format!("its meta record is gone, and {} are there", count(entries.len(), "worker")),
            format!("{} with the --layout and --workers of it", node.command("store repair")),
        ),
    }
}

fn judge(node: &NodeSettings, meta: &Meta) -> Vec<Finding> {
    if let Some(refusal) = setup(node).disagreement(meta) {
        return vec![Finding::fail(NAMESPACE, printable(&format!("{refusal:#}")), fix(&refusal))];
    }
    let (budget, window) = (node.effective_timing().outage_budget, meta.window_ms);
    let name = node.namespace.as_str();
    let (first, last) = (meta.first_worker, meta.last_worker);
    let seconds = window / 1000;
    let detail =
        format!("{name:?} has this layout, workers {first} to {last}, a window of {seconds} s");
    let mut rows = vec![Finding::ok(NAMESPACE, detail)];
    if is_plainly_wrong(meta.quarantine, unix_ms()) {
        rows.push(Finding::fail(
            NAMESPACE,
            format!("nobody uses it before {}, which is plainly wrong", instant(meta.quarantine)),
            repair_command(&node.url, Some(&node.namespace)),
        ));
    }
    if budget.as_millis() > u128::from(window) {
        rows.push(Finding::warn(
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
async fn overlapping(node: &NodeSettings, store: &dyn Store, workers: (u32, u32)) -> Vec<Finding> {
    let mark = layout_mark(&node.layout);
    match neighbours(store, &mark, workers).await {
        // Whoever may see its own namespace alone is set up well.
        Err(error) if error.kind() == ErrorKind::Denied => {
            vec![Finding::ok(
                NAMESPACE,
                format!("other namespaces of the store cannot be seen: {error:#}"),
            )]
        }
        Err(error) => vec![failed(NAMESPACE, &error)],
        Ok(found) => found
            .iter()
            .map(|neighbour| {
                Finding::warn(NAMESPACE, neighbour.to_string(), "use only one of the two")
            })
            .collect(),
    }
}

/// What a node would agree to.
fn setup(node: &NodeSettings) -> Setup {
    let last_worker = node.layout.last_worker().min(LAST_WORKER);
    Setup {
        timing: node.effective_timing(),
        layout: layout_mark(&node.layout),
        workers: fixed_worker(&node.url).map(|number| (number, number)).or(node.workers),
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
