//! `frazil store show`.

use std::fmt::Write as _;

use frazil::coord::internal::keeper::repair_command;
use frazil::coord::internal::rules::is_plainly_wrong;
use frazil::coord::internal::time::unix_ms;
use frazil::coord::internal::{Guard, SlotCounts, pool_meta};
use frazil::coord::{Guarantees, Meta, Store};
use serde::Serialize;

use crate::args::ShowArgs;
use crate::commands::workers::Pool;
use crate::output::{Data, Failure};
use crate::words::instant;

#[derive(Serialize)]
struct Shown {
    store: String,
    namespace: String,
    meta: Option<Meta>,
    guard: Option<ShownGuard>,
    workers: SlotCounts,
    guarantees: Guarantees,
}

/// Why and until when the store lets nobody new in.
#[derive(Serialize)]
struct ShownGuard {
    until_ms: u64,
    until: String,
    reason: String,
}

pub(super) async fn run(args: &ShowArgs) -> Result<(), Failure> {
    let store = args.place.look().await?;
    let shown = look(args, store.as_ref()).await?;
    let mut data = Data::new();
    if args.json {
        data.json(&shown)?
    } else {
        data.text(text(&shown))?
    }
    data.flush()
}

async fn look(args: &ShowArgs, store: &dyn Store) -> Result<Shown, Failure> {
    let pool = match pool_meta(store).await? {
        Some(meta) => Some(Pool::read(store, meta, unix_ms()).await?),
        None => None,
    };
    let workers = pool.as_ref().map(|pool| pool.tally).unwrap_or_default();
    let (meta, guard) = pool.map(|pool| (pool.meta, pool.guard)).unzip();
    Ok(Shown {
        store: store.to_string(),
        namespace: args.place.namespace.to_string(),
        meta,
        guard: guard.flatten().map(ShownGuard::from),
        workers,
        guarantees: store.guarantees(),
    })
}

impl From<Guard> for ShownGuard {
    fn from(Guard { until, reason }: Guard) -> Self {
        Self { until_ms: until, until: instant(until), reason }
    }
}

fn text(shown: &Shown) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: &str| {
        // Writing into a string cannot fail.
        let _ = writeln!(text, "{name:<12} {value}");
    };
    line("store", &shown.store);
    line("namespace", &shown.namespace);
    line(
        "",
        "a space of IDs: another one with this layout and any of these workers issues the same",
    );
    match &shown.meta {
        None => line(
            "",
            "its pool is not created yet: the first frazil next does that, or frazil store init",
        ),
        Some(meta) => {
            line("layout", &meta.layout);
            line("workers", &format!("{} to {}", meta.first_worker, meta.last_worker));
            line("", &shown.workers.to_string());
            line("window", &format!("{} s", meta.window_ms / 1000));
            line("created", &instant(meta.created));
            if meta.quarantine > unix_ms() {
                line("quarantine", &format!("until {}", instant(meta.quarantine)));
                if is_plainly_wrong(meta.quarantine, unix_ms()) {
                    let namespace = shown.namespace.parse().ok();
                    let run = repair_command(&shown.store, namespace.as_ref());
                    line("", &format!("which is plainly wrong: {run}"));
                }
            }
        }
    }
    if let Some(guard) = &shown.guard {
        line("guarded", &format!("until {}: {}", guard.until, guard.reason));
    }
    let promise = &shown.guarantees;
    line("kind", &promise.store);
    line("uniqueness", &format!("{}: {}", promise.uniqueness.word(), promise.because));
    line("leadership", &promise.leadership);
    line("token", &promise.token);
    for cause in &promise.voided_by {
        line("voided by", cause);
    }
    for warning in &promise.warnings {
        line("warning", warning);
    }
    text.trim_end().to_owned()
}
