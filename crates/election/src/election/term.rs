//! The truth about one leadership, shared by whoever holds it, renews it and asks about it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use frazil_coord::internal::time::boot_time;
use frazil_coord::{Token, UnixMs};
use frazil_fork::Birthmark;
use tokio::sync::watch;

use super::state::LeaderLoss;

/// One leadership, from its election to its end.
#[derive(Debug)]
pub(super) struct Term {
    pub(super) name: String,
    pub(super) token: Token,
    pub(super) floor: UnixMs,
    horizon: AtomicU64,
    /// Until when the store keeps the slot for it at least, in nanoseconds of boot time; [`NEVER`]
    /// if no time ends that.
    deadline: AtomicU64,
    /// Set once it is over here, which may be before the slot is given back.
    is_over: AtomicBool,
    ended: watch::Sender<Option<LeaderLoss>>,
    /// Of the process that leads: a copy of it, made by a fork, does not.
    mark: Arc<Birthmark>,
}

const NEVER: u64 = u64::MAX;

impl Term {
    /// A term that lasts until a boot time, or until it is ended.
    pub(super) fn new(
        name: String,
        token: Token,
        (floor, horizon): (UnixMs, UnixMs),
        deadline: Option<Duration>,
        mark: Arc<Birthmark>,
    ) -> Self {
        let deadline = AtomicU64::new(deadline.map_or(NEVER, nanos));
        let (horizon, ended) = (AtomicU64::new(horizon), watch::Sender::new(None));
        let is_over = AtomicBool::new(false);
        Self { name, token, floor, horizon, deadline, is_over, ended, mark }
    }

    /// Whether it lasts: derived from the time, each time.
    #[inline]
    pub(super) fn lasts(&self) -> bool {
        // Acquire: whoever sees the end sees all that came before it.
        !self.is_over.load(Ordering::Acquire) && self.is_held() && self.mark.is_here()
    }

    /// Whether the store keeps the slot for it: also when it is over here, and not given back yet.
    #[inline]
    pub(super) fn is_held(&self) -> bool {
        // The deadline first: it only ever moves on, so what is read may be too early, never late.
        let deadline = self.deadline();
        nanos(boot_time()) < deadline
    }

    /// How long it lasts from now: nothing if it is over, `None` if no time ends it.
    pub(super) fn remaining(&self) -> Option<Duration> {
        // As in `lasts`.
        if self.is_over.load(Ordering::Acquire) { Some(Duration::ZERO) } else { self.held_for() }
    }

    /// How long the store keeps the slot for it from now; `None` if no time ends that.
    pub(super) fn held_for(&self) -> Option<Duration> {
        match self.deadline() {
            NEVER => None,
            deadline => Some(Duration::from_nanos(deadline.saturating_sub(nanos(boot_time())))),
        }
    }

    #[inline]
    fn deadline(&self) -> u64 {
        // Acquire: whoever sees a deadline sees what came before it was set.
        self.deadline.load(Ordering::Acquire)
    }

    /// The store keeps the slot until this boot time at least. What is over stays over.
    pub(super) fn prolong(&self, deadline: Option<Duration>, horizon: UnixMs) {
        // Release on both: whoever sees the new bounds sees the answer that gave them.
        self.horizon.fetch_max(horizon, Ordering::Release);
        self.deadline.fetch_max(deadline.map_or(NEVER, nanos), Ordering::Release);
    }

    /// It is over for everybody who asks, whatever the store still believes. The first reason
    /// stays.
    pub(super) fn end(&self, loss: LeaderLoss) {
        // Release: whoever sees the end sees all that came before it.
        self.is_over.store(true, Ordering::Release);
        self.ended.send_if_modified(|ended| {
            let is_first = ended.is_none();
            if is_first {
                *ended = Some(loss);
            }
            is_first
        });
    }

    pub(super) fn horizon(&self) -> UnixMs {
        self.horizon.load(Ordering::Acquire)
    }

    /// Why it is over, once it is: also if nobody has noticed yet that its time ran out.
    pub(super) fn loss(&self) -> Option<LeaderLoss> {
        let told = self.ended.borrow().clone();
        told.or_else(|| (!self.lasts()).then_some(LeaderLoss::Expired))
    }

    /// Waits until it was ended, by somebody and not by time alone.
    pub(super) async fn ended(&self) {
        // It cannot be dropped before this ends.
        let _ = self.ended.subscribe().wait_for(Option::is_some).await;
    }

    /// Waits until no more than a margin is left of it.
    pub(super) async fn expiring(&self, margin: Duration) {
        let mut ended = self.ended.subscribe();
        loop {
            if ended.borrow_and_update().is_some() {
                return;
            }
            let left = match self.remaining() {
                Some(left) if left <= margin => return,
                Some(left) => left - margin,
                None => Duration::from_hours(24),
            };
            tokio::select! {
                // It cannot be dropped before this ends.
                _ = ended.changed() => {}
                // Meanwhile it may have been prolonged.
                () = tokio::time::sleep(left) => {}
            }
        }
    }
}

fn nanos(time: Duration) -> u64 {
    // 584 years.
    u64::try_from(time.as_nanos()).unwrap_or(NEVER - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark() -> Arc<Birthmark> {
        Arc::new(Birthmark::new())
    }

    fn term(left: Duration) -> Term {
        Term::new("x".into(), Token(7), (0, 0), Some(boot_time() + left), mark())
    }

    #[test]
    fn time_alone_ends_a_term() {
        let term = term(Duration::ZERO);
        assert!(!term.lasts());
        assert_eq!(term.remaining(), Some(Duration::ZERO));
        assert_eq!(term.loss(), Some(LeaderLoss::Expired));
    }

    #[test]
    fn a_term_that_is_over_is_not_prolonged() {
        let term = term(Duration::from_mins(1));
        assert!(term.lasts() && term.loss().is_none());
        term.end(LeaderLoss::Released);
        term.prolong(Some(boot_time() + Duration::from_hours(1)), 0);
        term.end(LeaderLoss::Expired);
        assert!(!term.lasts());
        assert_eq!(term.remaining(), Some(Duration::ZERO));
        assert!(term.is_held(), "the store keeps the slot all the same");
        assert_eq!(term.loss(), Some(LeaderLoss::Released), "the first reason stays");
    }

    #[test]
    fn a_late_answer_does_not_shorten_a_term() {
        let term = term(Duration::from_mins(10));
        term.prolong(Some(boot_time() + Duration::from_secs(1)), 5);
        assert!(term.remaining().unwrap() > Duration::from_mins(9));
        assert_eq!(term.horizon(), 5);
    }

    #[test]
    fn without_a_deadline_only_the_end_ends_it() {
        let term = Term::new("x".into(), Token(7), (0, 0), None, mark());
        assert!(term.lasts() && term.remaining().is_none());
        term.end(LeaderLoss::StoreLost);
        assert!(!term.lasts());
    }
}
