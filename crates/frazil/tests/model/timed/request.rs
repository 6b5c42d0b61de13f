//! Requests to the store: what the production driver does for each thing that a plan wants.

use frazil_coord::internal::keeper::Next;
use frazil_coord::internal::repair;
use frazil_coord::internal::rules::RUN_AHEAD_MS;
use frazil_coord::internal::{Acquired, Extended, Leasing, Released};
use frazil_coord::{Entry, Error, ErrorKind, Group, Look, Meta, Put, Store};

use super::scope::{Omitted, Scope};
use super::store::{ModelStore, StoreState};

/// What the store answered.
#[derive(Clone, Debug)]
pub(super) enum Answer {
    Meta(Result<Look, Error>, bool),
    Written(Result<Put, Error>),
    Acquired(Result<Acquired, Error>),
    Extended(Result<Extended, Error>),
    Released(Result<Released, Error>),
    Listed(Result<Vec<Entry>, Error>),
    Repaired,
}

/// Carries out a request.
pub(super) fn execute(
    scope: &Scope,
    state: &mut StoreState,
    next: &Next,
    heartbeat_ms: u64,
) -> Answer {
    ModelStore::run(scope, state, async |store| match next {
        Next::ReadMeta => {
            let read = store.read(&[]).await;
            let is_gone = read.as_ref().is_ok_and(|look| look.meta.is_none());
            let left = store.list(Group::Workers).await;
            Answer::Meta(read, is_gone && left.is_ok_and(|entries| !entries.is_empty()))
        }
        Next::WriteMeta(expected, meta) => {
            let meta = written(scope, expected.is_none(), meta, heartbeat_ms);
            Answer::Written(store.put_meta(*expected, &meta).await)
        }
        Next::Acquire(claim) => Answer::Acquired(store.acquire(claim).await),
        Next::Extend(tenure, ask) => Answer::Extended(store.extend(tenure, ask).await),
        Next::Release(tenure, last) => Answer::Released(store.release(tenure, *last).await),
        Next::Look => Answer::Listed(store.list(Group::Workers).await),
        Next::Repair(claim) => {
            // Nothing is lost here that the store knows to be lost.
            let _ = repair::lost_records(store, claim, || claim.now).await;
            Answer::Repaired
        }
        Next::Wait(_) | Next::Watch(_) | Next::Lapse(_) | Next::Stop => unreachable!("no request"),
    })
}

/// The answer to somebody who cannot reach the store, or who hears nothing.
pub(super) fn failed(next: &Next, kind: ErrorKind) -> Answer {
    let error = Error::new(kind, "request", "model:", "no answer");
    match next {
        Next::ReadMeta => Answer::Meta(Err(error), false),
        Next::WriteMeta(..) => Answer::Written(Err(error)),
        Next::Acquire(_) => Answer::Acquired(Err(error)),
        Next::Extend(..) => Answer::Extended(Err(error)),
        Next::Release(..) => Answer::Released(Err(error)),
        Next::Look => Answer::Listed(Err(error)),
        Next::Repair(_) => Answer::Repaired,
        Next::Wait(_) | Next::Watch(_) | Next::Lapse(_) | Next::Stop => unreachable!("no request"),
    }
}

/// Meta as it is written where a rule is left out.
fn written(scope: &Scope, is_new: bool, meta: &Meta, heartbeat_ms: u64) -> Meta {
    let quarantine = match scope.omitted {
        Omitted::Silence if is_new => 0,
        Omitted::SilenceForOthersHeartbeats if is_new => meta.created + heartbeat_ms + RUN_AHEAD_MS,
        Omitted::RaisingTheQuarantine if !is_new => meta.created,
        _ => meta.quarantine,
    };
    Meta { quarantine, ..meta.clone() }
}
