//! The reason why no worker was to be had: who holds what, and until when.

use std::fmt::Write as _;

use frazil::StartError;
use frazil::coord::Waiting;
use frazil::coord::internal::keeper::repair_command;
use frazil::coord::internal::time::unix_ms;
use frazil::coord::internal::{Guard, SlotState};

use crate::args::NextArgs;
use crate::commands::workers::{Pool, View};
use crate::output::{Exit, Failure};
use crate::words::{count, instant, printable};

/// How many holders are named; `workers ls` names all.
const NAMED_MAX: usize = 4;

/// Why no worker was to be had.
pub(super) struct Shortage {
    exit: Exit,
    message: String,
}

impl Shortage {
    pub(super) async fn of(args: &NextArgs, why: Waiting) -> Self {
        match &why {
            Waiting::Quarantine { until } => Self {
                exit: Exit::Refused,
                message: format!(
                    "no worker before {}: the namespace is in quarantine until then. Wait, or let \
                     frazil next do so with --patience {}s",
                    instant(*until),
                    until.saturating_sub(unix_ms()).div_ceil(1000) + 1
                ),
            },
            Waiting::WrongTimes { .. } => Self {
                exit: Exit::Refused,
                message: format!("no worker, waiting for {why}: {}", run_this(args)),
            },
            Waiting::Clock { .. } => Self {
                exit: Exit::Refused,
                message: format!("no worker, waiting for {why}: set the clock right"),
            },
            Waiting::Pool(_) => match look(args).await {
                Ok(pool) => Self::of_pool(args, &pool),
                // What the lease saw is true too, if less.
                Err(_) => Self::of_lease(why),
            },
            Waiting::Answer | Waiting::Store(_) | Waiting::Settling(_) => Self::of_lease(why),
        }
    }

    fn of_lease(why: Waiting) -> Self {
        let message = StartError::NoWorker(why).to_string();
        Self { exit: Exit::Unavailable, message }
    }

    fn of_pool(args: &NextArgs, pool: &Pool) -> Self {
        if let Some(Guard { until, reason }) = &pool.guard {
            let message = format!(
                "no worker before {}: {reason}. Wait until then; frazil store show tells what the \
                 store promises",
                instant(*until)
            );
            return Self { exit: Exit::Refused, message };
        }
        let patience = args.patience.as_secs_f64();
        let message = format!("no free worker within {patience} s: {}", described(pool));
        Self { exit: Exit::Unavailable, message }
    }
}

/// The command that brings wrong times down.
fn run_this(args: &NextArgs) -> String {
    let url = args.place.url().map(|url| url.to_string());
    repair_command(&url.unwrap_or_default(), Some(&args.place.namespace))
}

async fn look(args: &NextArgs) -> Result<Pool, Failure> {
    let (store, meta) = args.place.look_at_namespace().await?;
    Ok(Pool::read(store.as_ref(), meta, unix_ms()).await?)
}

/// What is the matter with each worker, and what helps.
fn described(pool: &Pool) -> String {
    let of = |state: SlotState| pool.views.iter().filter(move |view| view.state == state);
    let mut text = match of(SlotState::Held).count() {
        0 => String::new(),
        held => format!("{held} held ({})", holders(of(SlotState::Held))),
    };
    let mut add = |more: String| {
        let gap = if text.is_empty() { "" } else { ", " };
        // Writing into a string cannot fail.
        let _ = write!(text, "{gap}{more}");
    };
    let blocked = of(SlotState::Blocked).count();
    if let Some(first) = of(SlotState::Blocked).filter_map(|view| view.horizon_ms).min() {
        add(format!("{blocked} blocked, the first until {}", instant(first)));
    }
    let (lost, poisoned) = (of(SlotState::Lost).count(), of(SlotState::Poisoned).count());
    if lost > 0 {
        add(format!("{} without a record (frazil store repair)", count(lost, "worker")));
    }
    if poisoned > 0 {
        add(format!("{poisoned} poisoned (frazil store repair names them)"));
    }
    let free = pool.tally.never_used + pool.tally.free;
    if free > 0 {
        add(format!("{free} free by now"));
    }
    let help = "Wait longer with --patience, or stop a holder";
    format!("{text}. {help}")
}

fn holders<'a>(held: impl Iterator<Item = &'a View>) -> String {
    let mut names: Vec<_> = held
        .map(|view| {
            let holder = view.holder.as_deref().unwrap_or("somebody");
            format!("worker {} by {}", view.worker, printable(holder))
        })
        .collect();
    let more = names.len().saturating_sub(NAMED_MAX);
    names.truncate(NAMED_MAX);
    if more > 0 {
        names.push(format!("{more} more in frazil workers ls"));
    }
    names.join(", ")
}

impl From<Shortage> for Failure {
    fn from(shortage: Shortage) -> Self {
        Self::new(shortage.exit, shortage.message)
    }
}
