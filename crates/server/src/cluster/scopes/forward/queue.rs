//! The requests of one scope that wait for its leader, and what is known of that.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use frazil::coord::UnixMs;
use frazil::coord::internal::time::boot_time;
use frazil_client::between_nodes::{Budget, Health, Readiness};
use frazil_id::Id;
use frazil_wire::{ApiError, Reason};
use tokio::sync::oneshot;

use super::super::StrictScope;
use super::super::issue::{Attempt, AttemptError, RETRY};
use super::BACK_OFF;
use crate::policy::admission::IssuedIds;

/// Who waits for a scope's leader. At most one task asks it.
#[derive(Debug, Default)]
pub(in super::super) struct Forwards(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<Waiter>,
    is_being_asked: bool,
    /// The last ID of the scope that this node has handed out, whoever led then.
    last: Option<Id>,
    back_off: Option<LeaderBackOff>,
    /// For asking a leader that failed again.
    budget: Budget,
}

/// A leader that failed is left alone for a while, which grows with every failure.
#[derive(Debug)]
struct LeaderBackOff {
    /// Which leader.
    token: u64,
    health: Health,
    error: ApiError,
}

/// A request that waits.
#[derive(Debug)]
pub(super) struct Waiter {
    pub(super) count: u32,
    pub(super) deadline: Duration,
    /// When it came, in boot time, and what the clock of this node's IDs showed.
    pub(super) came: Duration,
    pub(super) now: UnixMs,
    /// Whether it has failed before.
    pub(super) is_again: bool,
    answer: oneshot::Sender<Result<IssuedIds, AttemptError>>,
}

/// The task that asks the leader. If it is dropped while requests wait, they are told.
#[derive(Debug)]
pub(super) struct ForwardTask {
    strict: Arc<StrictScope>,
    is_done: bool,
}

impl Waiter {
    pub(super) fn new(
        count: u32,
        attempt: Attempt,
        now: UnixMs,
    ) -> (Self, oneshot::Receiver<Result<IssuedIds, AttemptError>>) {
        let (answer, answered) = oneshot::channel();
        let Attempt { deadline, is_again, .. } = attempt;
        (Self { count, deadline, came: boot_time(), now, is_again, answer }, answered)
    }

    /// Who does not wait any more gets nothing; IDs for it are lost.
    pub(super) fn answer(self, answer: Result<IssuedIds, AttemptError>) {
        let _ = self.answer.send(answer);
    }
}

impl Forwards {
    /// Adds a request, unless `most` wait. The one that gets the task must run it.
    pub(super) fn join(
        &self,
        waiter: Waiter,
        strict: &Arc<StrictScope>,
        most: usize,
    ) -> Result<Option<ForwardTask>, ApiError> {
        let mut state = self.state();
        let before = state.waiting.len();
        if before >= most {
            let detail = format_args!("{before} requests wait for IDs of {} already", strict.name);
            return Err(ApiError::new(Reason::Overloaded, detail).retry_after(RETRY));
        }
        if !waiter.is_again {
            state.budget.earn();
        }
        state.waiting.push_back(waiter);
        let is_first = !std::mem::replace(&mut state.is_being_asked, true);
        Ok(is_first.then(|| ForwardTask { strict: strict.clone(), is_done: false }))
    }

    /// The last ID of the scope that this node has handed out.
    pub(in super::super) fn last(&self) -> Option<Id> {
        self.state().last
    }

    /// Notes an ID of the scope that this node hands out.
    pub(in super::super) fn raise(&self, last: Id) {
        let mut state = self.state();
        state.last = state.last.max(Some(last));
    }

    /// Fails while the leader with this token is left alone, or if it failed, is asked again, and that
    /// was done as often as requests came.
    pub(super) fn check_back_off(&self, token: u64, is_again: bool) -> Result<(), AttemptError> {
        let state = self.state();
        match state.back_off.as_ref().filter(|back_off| back_off.token == token) {
            Some(back_off) if back_off.left().is_some() || (is_again && !state.budget.spend()) => {
                Err(AttemptError::Moved(back_off.error.clone()))
            }
            _ => Ok(()),
        }
    }

    /// For how long the leader is still left alone, if it is.
    pub(in super::super) fn back_off_left(&self) -> Option<Duration> {
        self.state().back_off.as_ref()?.left()
    }

    /// Notes whether the leader with this token answered.
    pub(super) fn note(&self, token: u64, failure: Option<&AttemptError>) {
        let mut state = self.state();
        let Some(AttemptError::Moved(error)) = failure else {
            state.back_off = None;
            return;
        };
        let health = match state.back_off.take() {
            Some(back_off) if back_off.token == token => back_off.health,
            _ => Health::new(),
        };
        health.failed(now_ns(), None, &BACK_OFF, 1.0);
        state.back_off = Some(LeaderBackOff { token, health, error: error.clone() });
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LeaderBackOff {
    fn left(&self) -> Option<Duration> {
        let now = now_ns();
        match self.health.readiness(now) {
            Readiness::BackingOff(until) => Some(Duration::from_nanos(until.saturating_sub(now))),
            Readiness::Ready | Readiness::ProbeDue => None,
        }
    }
}

impl ForwardTask {
    /// Those who have waited longest, for up to so many IDs together; the first may want more. `None`:
    /// nobody waits, and the next request gets the task.
    pub(super) fn next_group(&mut self, most: u32) -> Option<Vec<Waiter>> {
        let mut state = self.strict.forwards.state();
        let (mut group, mut count) = (Vec::new(), 0_u32);
        while let Some(next) = state.waiting.pop_front() {
            if next.answer.is_closed() {
                continue;
            }
            let with = count.saturating_add(next.count);
            if !group.is_empty() && with > most {
                state.waiting.push_front(next);
                break;
            }
            count = with;
            group.push(next);
        }
        if group.is_empty() {
            state.is_being_asked = false;
            self.is_done = true;
            return None;
        }
        Some(group)
    }
}

impl Drop for ForwardTask {
    fn drop(&mut self) {
        if self.is_done {
            return;
        }
        let mut state = self.strict.forwards.state();
        // Their receivers notice.
        state.waiting.clear();
        state.is_being_asked = false;
    }
}

fn now_ns() -> u64 {
    u64::try_from(boot_time().as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_leader_that_failed_is_asked_again_no_more_often_than_requests_come() {
        let forwards = Forwards::default();
        // It has failed, and was left alone for long enough.
        let error = ApiError::new(Reason::NoLeader, "away");
        forwards.state().back_off = Some(LeaderBackOff { token: 7, health: Health::new(), error });
        let again = || (0..100).filter(|_| forwards.check_back_off(7, true).is_ok()).count();
        assert_eq!(again(), 20, "what is saved up");
        assert!(
            forwards.check_back_off(7, false).is_ok(),
            "a request that comes is asked for once"
        );
        assert!(forwards.check_back_off(8, true).is_ok(), "another leader has not failed");
        for _ in 0..3 {
            forwards.state().budget.earn();
        }
        assert_eq!(again(), 3);
    }
}
