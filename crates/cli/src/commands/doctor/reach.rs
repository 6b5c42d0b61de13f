//! Does the store answer, and how soon?

use std::sync::Arc;
use std::time::Duration;

use frazil::coord::time::boot_time;
use frazil::coord::{Error, ErrorKind, Leasing, Store};

use super::case::Case;
use super::clock::ms;
use super::login;
use super::report::Row;
use crate::commands::place::next_step_after;

const CHECK: &str = "store";
/// How often it is read to know how long that takes.
const READS: usize = 5;
/// Leases need far less, but a store that is this far away is in another region or overloaded.
const MEDIAN_MAX: Duration = Duration::from_millis(50);

/// Opens the store to read. What is not safe to use was reached all the same, and counts against its
/// guarantees.
pub(super) async fn look(case: &Case, reached: &mut Option<Arc<dyn Store>>) -> Vec<Row> {
    let store = match frazil::coord::look(&case.url, &case.namespace).await {
        Ok(store) => store,
        Err(error) if error.kind() == ErrorKind::Unsafe => {
            let why = "it was reached, but nothing would be leased from it: see guarantees";
            return vec![Row::skipped(CHECK, why), failed("guarantees", &error)];
        }
        Err(error) => return vec![failed(CHECK, &error)],
    };
    let trips = match measure(store.as_ref()).await {
        Ok(trips) => trips,
        Err(error) => return vec![failed(CHECK, &error)],
    };
    let row = judge(case, &store.to_string(), trips);
    *reached = Some(store);
    vec![row]
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

fn judge(case: &Case, store: &str, trips: [Duration; READS]) -> Row {
    let (median, worst) = (trips[READS / 2], trips[READS - 1]);
    let login = match case.url.hosts.is_empty() {
        true => String::new(),
        false => format!(" {}", login::described(&case.url)),
    };
    let detail = format!("{store} answers{login}: {} median, {} at worst", ms(median), ms(worst));
    let worst_max = case.effective_timing().heartbeat / 10;
    if median > MEDIAN_MAX || worst > worst_max {
        let fix = format!(
            "use a store that is nearer or less busy (median at most {}, worst at most a tenth of \
             the heartbeat), or a longer --heartbeat and --ttl",
            ms(MEDIAN_MAX)
        );
        return Row::warn(CHECK, detail, fix);
    }
    Row::ok(CHECK, detail)
}

/// The row of an error of the store.
pub(super) fn failed(check: &'static str, error: &Error) -> Row {
    let text = error.to_string();
    let fix = match next_step_after(error) {
        Some(step) => step,
        None => remedy(error.kind(), &text),
    };
    Row::fail(check, text, fix)
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
