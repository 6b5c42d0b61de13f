//! The log lines of a lease: what happens to it, and what it waits for.

use std::time::Duration;

use super::Grant;
use super::plan::Now;
use super::status::{LeaseState, LeaseStatus, POISONED_ADVICE, Pool, Waiting, repair_command};
use crate::lease::{Census, Loss, Tenure};
use crate::record::UnixMs;
use crate::rules::RUN_AHEAD_MS;
use crate::store::Store;
use crate::time::Utc;

/// How often it is said again what a lease waits for.
pub(super) const SAY_AGAIN: Duration = Duration::from_secs(5);

/// What was said of a lease so far.
#[derive(Debug, Default)]
pub(super) struct LeaseLog {
    told: Option<LastLogged>,
}

/// What was said last of a lease that waits; the times are boot times.
#[derive(Clone, Copy, Debug)]
struct LastLogged {
    /// Which kind of waiting.
    kind: &'static str,
    at: Duration,
    /// When the lease began to wait.
    since: Duration,
}

impl LeaseLog {
    /// A worker was leased.
    pub(super) fn leased(&mut self, grant: Grant) {
        self.told = None;
        let Grant { worker, token, floor, horizon } = grant;
        tracing::info!(worker, %token, floor, horizon, "worker {worker} is leased");
    }

    /// The lease of a worker was lost.
    pub(super) fn lost(&self, tenure: &Tenure, loss: &Loss) {
        let Tenure { slot, token, floor, horizon, .. } = tenure;
        let (worker, name) = (slot.number(), slot.name());
        tracing::warn!(worker, %token, floor, horizon, %loss, "a lease was lost: worker {name}");
    }

    /// A worker was released, and the last time that was used with it.
    pub(super) fn released(&self, tenure: &Tenure, last: UnixMs) {
        let Tenure { slot, token, floor, horizon, .. } = tenure;
        let (worker, name) = (slot.number(), slot.name());
        tracing::info!(worker, %token, floor, horizon, last, "worker {name} is released");
    }

    /// Says what a lease without a worker waits for: at once, and then every few seconds.
    pub(super) fn waits(&mut self, status: &LeaseStatus, store: &dyn Store, now: Now) {
        let (LeaseState::Seeking(waiting) | LeaseState::Replacing(_, waiting)) = &status.state
        else {
            self.told = None;
            return;
        };
        let kind = kind(waiting);
        let is_told = |told: LastLogged| told.kind == kind && now.boot < told.at + SAY_AGAIN;
        if self.told.is_some_and(is_told) {
            return;
        }
        let since = self.told.map_or(now.boot, |told| told.since);
        self.told = Some(LastLogged { kind, at: now.boot, since });
        let waited_s = now.boot.saturating_sub(since).as_secs();
        let what = what(waiting, status.pool, now.unix);
        if matches!(waiting, Waiting::WrongTimes { .. }) {
            let run = repair_command(&store, store.namespace());
            tracing::error!(waited_s, run, "waiting for {what}");
            return;
        }
        match &status.trouble {
            Some(error) => {
                tracing::info!(waited_s, error = %format_args!("{error:#}"), "waiting for {what}")
            }
            None => tracing::info!(waited_s, "waiting for {what}"),
        }
    }
}

const fn kind(waiting: &Waiting) -> &'static str {
    match waiting {
        Waiting::Answer => "answer",
        Waiting::Store(_) => "store",
        Waiting::Pool(_) => "pool",
        Waiting::Quarantine { .. } => "quarantine",
        Waiting::WrongTimes { .. } => "wrong times",
        Waiting::Clock(_) => "clock",
        Waiting::Settling(_) => "settling",
    }
}

/// What is waited for, and until when where that is known.
fn what(waiting: &Waiting, pool: Option<Pool>, now: UnixMs) -> String {
    match waiting {
        Waiting::Pool(census) => {
            let Census { held, blocked, poisoned, next_floor } = *census;
            let size = pool.map_or_else(String::new, |pool| format!(" {}", pool.size));
            let first = match next_floor {
                Some(floor) => format!("the first blocked one frees {}", when(floor, now)),
                None if census.is_poisoned_out() => POISONED_ADVICE.to_owned(),
                None => "one frees when its holder releases it or is gone".to_owned(),
            };
            format!(
                "a worker: all{size} are held or blocked ({held} held, {blocked} blocked, {poisoned} \
                 poisoned); {first}"
            )
        }
        Waiting::Quarantine { until } => {
            format!("the end of the namespace's quarantine, {}", when(*until, now))
        }
        other => other.to_string(),
    }
}

/// When times above a floor can be used: a little before it, as they may run ahead of the clock.
fn when(floor: UnixMs, now: UnixMs) -> String {
    let at = floor.saturating_sub(RUN_AHEAD_MS);
    let tenths = at.saturating_sub(now).div_ceil(100);
    let (whole, tenth) = (tenths / 10, tenths % 10);
    format!("at {} (in {whole}.{tenth} s)", Utc(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOON: UnixMs = 20_000 * 86_400_000 + 12 * 3_600_000;

    #[test]
    fn a_full_pool_is_told_with_the_moment_that_its_first_worker_frees() {
        let floor = NOON + 3_120 + RUN_AHEAD_MS;
        let census = Census { held: 14, blocked: 2, poisoned: 0, next_floor: Some(floor) };
        let pool = Pool { size: 16, census };
        assert_eq!(
            what(&Waiting::Pool(census), Some(pool), NOON - 1_080),
            "a worker: all 16 are held or blocked (14 held, 2 blocked, 0 poisoned); the first \
             blocked one frees at 2024-10-04T12:00:03.120Z (in 4.2 s)"
        );
        let held = Census { blocked: 0, next_floor: None, ..census };
        let text = what(&Waiting::Pool(held), Some(pool), NOON);
        assert!(text.ends_with("one frees when its holder releases it or is gone"), "{text}");
    }

    #[test]
    fn a_quarantine_is_told_with_its_end_and_one_that_is_over_too() {
        let waiting = Waiting::Quarantine { until: NOON + RUN_AHEAD_MS };
        let text = what(&waiting, None, NOON - 17_000);
        assert_eq!(
            text,
            "the end of the namespace's quarantine, at 2024-10-04T12:00:00.000Z (in 17.0 s)"
        );
        assert!(what(&waiting, None, NOON + 5).ends_with("(in 0.0 s)"));
    }
}
