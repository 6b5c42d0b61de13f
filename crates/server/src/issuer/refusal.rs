//! The error that a client is told, made from what a node says.

use std::time::Duration;

use frazil::coord::internal::time::unix_ms;
use frazil::coord::{LeaseState, Waiting};
use frazil::{Node, NotIssued};
use frazil_id::{NotReady, StartError};
use frazil_wire::{ApiError, Reason};

/// When to look again after what an operator or a store has to repair.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// When to look again after what passes within a request to the store.
const SOON: Duration = Duration::from_millis(200);

/// Why nothing was issued, in the words of the catalogue.
pub(super) fn refusal(why: &NotIssued, node: Option<&Node>) -> ApiError {
    match why {
        _ if node.is_some_and(|node| node.is_held_up(why)) => held_up(),
        NotIssued::NotReady(why) => not_ready(*why, node),
        NotIssued::NoWorker(state) => no_worker(state),
        NotIssued::Unusable(fault) => unusable(*fault, why),
        _ => ApiError::new(Reason::NoWorker, why).retry_after(LOOK_AGAIN),
    }
}

fn not_ready(why: NotReady, node: Option<&Node>) -> ApiError {
    let reason = match why {
        NotReady::Horizon { .. } => return horizon(node),
        NotReady::ClockRefused { .. } | NotReady::ClockBehind { .. } => Reason::ClockMovedBackwards,
        NotReady::BeforeEpoch { .. } => Reason::ClockUntrusted,
        NotReady::TimeExhausted { .. } => return ApiError::new(Reason::TimeExhausted, why),
        NotReady::BatchTooLarge { .. } => return ApiError::new(Reason::CountOutOfRange, why),
        NotReady::Closed => Reason::Draining,
        _ => Reason::Overloaded,
    };
    ApiError::new(reason, why).retry_after(why.retry_after().unwrap_or(LOOK_AGAIN))
}

/// Of the horizon there is more than is used yet.
fn held_up() -> ApiError {
    let detail = "this process was stopped or held up: its lease is looked at before it goes on";
    ApiError::new(Reason::HorizonReached, detail).retry_after(SOON)
}

/// The lease knows why it was not extended.
fn horizon(node: Option<&Node>) -> ApiError {
    let state = node.and_then(|node| node.watch().borrow().first().map(|lane| lane.state.clone()));
    let reason = match &state {
        Some(LeaseState::Distrusted { .. }) => Reason::ClockUntrusted,
        _ => Reason::HorizonReached,
    };
    let detail = match state {
        Some(state) => format!("the lease was not extended: {state}"),
        None => "the lease was not extended".to_owned(),
    };
    ApiError::new(reason, detail).retry_after(LOOK_AGAIN)
}

/// What the layout or the clock makes impossible.
fn unusable(fault: StartError, why: &NotIssued) -> ApiError {
    match fault {
        StartError::LifetimeTooShort { .. } | StartError::FloorTooHigh { .. } => {
            ApiError::new(Reason::TimeExhausted, why)
        }
        StartError::Clock(_) => ApiError::new(Reason::ClockUntrusted, why).retry_after(LOOK_AGAIN),
        _ => ApiError::new(Reason::Internal, why),
    }
}

fn no_worker(state: &LeaseState) -> ApiError {
    let (reason, wait) = match state {
        LeaseState::Released => (Reason::Draining, LOOK_AGAIN),
        LeaseState::Seeking(waiting) | LeaseState::Replacing(_, waiting) => match waiting {
            Waiting::Quarantine { until } => {
                let left = Duration::from_millis(until.saturating_sub(unix_ms()));
                (Reason::Quarantined, left.max(LOOK_AGAIN))
            }
            Waiting::WrongTimes { .. } => (Reason::Quarantined, LOOK_AGAIN),
            Waiting::Clock { .. } => (Reason::ClockUntrusted, LOOK_AGAIN),
            _ => (Reason::NoWorker, LOOK_AGAIN),
        },
        _ => (Reason::NoWorker, LOOK_AGAIN),
    };
    let error = match state {
        LeaseState::Released => {
            ApiError::new(reason, "the node has released its workers: ask another one")
        }
        state => ApiError::new(reason, state),
    };
    error.retry_after(wait)
}
