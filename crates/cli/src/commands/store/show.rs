//! `frazil store show`.

use std::fmt::Write as _;

use frazil::coord::stores::file::Copied;
use frazil::coord::time::unix_ms;
use frazil::coord::{Guarantees, Meta, Store};
use serde::Serialize;

use crate::args::ShowArgs;
use crate::commands::workers::{State, View, instant, views};
use crate::output::{Data, Failure};

#[derive(Serialize)]
struct Shown {
    store: String,
    namespace: String,
    meta: Option<Meta>,
    workers: Counts,
    guarantees: Guarantees,
}

/// How many workers are in which state.
#[derive(Default, Serialize)]
struct Counts {
    never_used: u32,
    held: u32,
    free: u32,
    blocked: u32,
    quarantined: u32,
    poisoned: u32,
    lost: u32,
}

pub(super) async fn run(args: &ShowArgs) -> Result<(), Failure> {
    let store = args.place.open(Copied::Refuse).await?;
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
    let meta = store.meta().await?;
    let workers = match &meta {
        Some(meta) => {
            let views = views(store, meta, unix_ms()).await?;
            let all = meta.value.last_worker.saturating_sub(meta.value.first_worker);
            Counts::of(&views, all.saturating_add(1))
        }
        None => Counts::default(),
    };
    Ok(Shown {
        store: store.to_string(),
        namespace: args.place.namespace.to_string(),
        meta: meta.map(|meta| meta.value),
        workers,
        guarantees: store.guarantees(),
    })
}

impl Counts {
    fn of(views: &[View], all: u32) -> Self {
        let mut counts = Self { never_used: all, ..Self::default() };
        for view in views {
            counts.never_used = counts.never_used.saturating_sub(1);
            let count = match view.state {
                State::Held => &mut counts.held,
                State::Free => &mut counts.free,
                State::Blocked => &mut counts.blocked,
                State::Quarantined => &mut counts.quarantined,
                State::Poisoned => &mut counts.poisoned,
                State::Lost => &mut counts.lost,
            };
            *count += 1;
        }
        counts
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
    match &shown.meta {
        None => line("", "not created yet: its first node does that, or frazil store init"),
        Some(meta) => {
            line("layout", &meta.layout);
            line("workers", &format!("{} to {}", meta.first_worker, meta.last_worker));
            let counts = &shown.workers;
            line(
                "",
                &format!(
                    "{} held, {} free, {} blocked, {} quarantined, {} poisoned, {} lost, \
                     {} never used",
                    counts.held,
                    counts.free,
                    counts.blocked,
                    counts.quarantined,
                    counts.poisoned,
                    counts.lost,
                    counts.never_used
                ),
            );
            line("window", &format!("{} s", meta.window_ms / 1000));
            line("created", &instant(meta.created));
            if meta.quarantine > unix_ms() {
                line("quarantine", &format!("until {}", instant(meta.quarantine)));
            }
        }
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
