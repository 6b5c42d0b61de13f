//! The store: whether it answers and how soon, and what it promises.

use std::sync::Arc;
use std::time::Duration;

use frazil_coord::internal::Leasing;
use frazil_coord::internal::time::boot_time;
use frazil_coord::{Error, ErrorKind, Severity, Store};

use crate::advice::next_step_after;
use crate::check::Check;
use crate::clock::ms;
use crate::finding::Finding;
use crate::login::described;
use crate::node_settings::NodeSettings;

const STORE: &str = "store";
/// How often it is read to know how long that takes.
const READS: usize = 5;
/// Leases need far less, but a store that is this far away is in another region or overloaded.
const MEDIAN_MAX: Duration = Duration::from_millis(50);

/// Opens the store to read, and measures how soon it answers: the check `store`. What is not safe to use
/// was reached all the same, and counts against its guarantees. The store is there unless it failed.
pub async fn store(node: &NodeSettings) -> (Vec<Finding>, Option<Arc<dyn Store>>) {
    let store = match frazil_coord::look(&node.url, &node.namespace).await {
        Ok(store) => store,
        Err(error) if error.kind() == ErrorKind::Unsafe => {
            let why = "it was reached, but nothing would be leased from it: see guarantees";
            return (vec![Finding::skipped(STORE, why), failed("guarantees", &error)], None);
        }
        Err(error) => return (vec![failed(STORE, &error)], None),
    };
    let trips = match measure(store.as_ref()).await {
        Ok(trips) => trips,
        Err(error) => return (vec![failed(STORE, &error)], None),
    };
    (vec![judge_trips(node, &store.to_string(), trips)], Some(store))
}

/// How long reading meta took, the quickest first.
async fn measure(store: &dyn Store) -> Result<[Duration; READS], Error> {
    let mut trips = [Duration::ZERO; READS];
    for trip in &mut trips {
        let began = boot_time();
        match store.meta().await {
            Err(error) if error.kind().is_retryable() => return Err(error),
            // What it says is for another check.
            Ok(_) | Err(_) => *trip = boot_time().saturating_sub(began),
        }
    }
    trips.sort_unstable();
    Ok(trips)
}

fn judge_trips(node: &NodeSettings, store: &str, trips: [Duration; READS]) -> Finding {
    let (median, worst) = (trips[READS / 2], trips[READS - 1]);
    let login = match node.url.hosts.is_empty() {
        true => String::new(),
        false => format!(" {}", described(&node.url)),
    };
    let detail = format!("{store} answers{login}: {} median, {} at worst", ms(median), ms(worst));
    let worst_max = node.effective_timing().heartbeat / 10;
    if median > MEDIAN_MAX || worst > worst_max {
        let fix = format!(
            "use a store that is nearer or less busy (median at most {}, worst at most a tenth of \
             the heartbeat), or a longer --heartbeat and --ttl",
            ms(MEDIAN_MAX)
        );
        return Finding::warn(STORE, detail, fix);
    }
    Finding::ok(STORE, detail)
}

/// The finding of an error of the store.
pub(crate) fn failed(check: &'static str, error: &Error) -> Finding {
    let text = format!("{error:#}");
    let fix = match next_step_after(error) {
        Some(step) => step,
        None => remedy(error.kind(), &text),
    };
    Finding::fail(check, text, fix)
}

/// What to do about an error that says itself what is wrong.
fn remedy(kind: ErrorKind, text: &str) -> &'static str {
    let says = |word: &str| text.contains(word);
    match kind {
        ErrorKind::Unsafe if says("maxmemory-policy") => {
            "redis-cli CONFIG SET maxmemory-policy noeviction, and CONFIG REWRITE to keep it"
        }
        ErrorKind::Unsafe if says("too old") => "upgrade the server",
        ErrorKind::Unsafe if says("file system") => {
            "name a directory on a local disk with --store file:DIRECTORY"
        }
        ErrorKind::Unsafe if says("copied") => {
            "frazil store quarantine --adopt, if the original is not used any more"
        }
        ErrorKind::Unsafe if says("replica") => "name the master, or use redis+sentinel:",
        ErrorKind::InvalidConfig => "correct the URL: frazil doctor --help shows all it can say",
        ErrorKind::Corrupt => "do as it says, or see docs/guarantees.md",
        _ => "do as it says",
    }
}

const GUARANTEES: &str = "guarantees";

/// What the store promises as it is set up, and what weakens that: the check `guarantees`.
pub fn guarantees<'a>(node: &'a NodeSettings, store: &'a dyn Store) -> Check<'a> {
    Box::pin(async move {
        let promised = store.guarantees();
        let detail = format!("{}: uniqueness is {}", promised.store, promised.uniqueness.word());
        let mut rows = vec![Finding::ok(GUARANTEES, detail)];
        match store.diagnose(&node.effective_timing()).await {
            Ok(findings) => rows.extend(findings.into_iter().map(|found| match found.severity {
                Severity::Warning => Finding::warn(GUARANTEES, found.what, found.fix),
                _ => Finding::fail(GUARANTEES, found.what, found.fix),
            })),
            Err(error) => rows.push(failed(GUARANTEES, &error)),
        }
        rows
    })
}
