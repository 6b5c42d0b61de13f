//! The extension and the release of a tenure.

use super::{ROUNDS_MAX, crowded, written};
use crate::error::{Error, ErrorKind};
use crate::lease::{Ask, Extended, Loss, Released, Tenure};
use crate::record::{Meta, Record, UnixMs, Version, Versioned};
use crate::rules;
use crate::store::{Act, Change, Commit, Committed, Found, Look, PresenceChange, Present, Store};

pub(super) async fn extend<S: Store + ?Sized>(
    store: &S,
    tenure: &Tenure,
    ask: &Ask,
) -> Result<Extended, Error> {
    // In most cases nothing has changed since the last answer.
    let mut known = (tenure.version, tenure.record());
    let mut history = tenure.settling.history.clone();
    for _ in 0..ROUNDS_MAX {
        let record = match rules::extend(&known.1, tenure, ask) {
            Ok(record) => record,
            Err(loss) => return Ok(Extended::Lost(loss)),
        };
        let horizon = record.horizon;
        let commit = Commit {
            history: Some(history.clone()).filter(|history| !history.is_empty()),
            ..commit(Act::Extend, tenure, known.0, record, PresenceChange::For(ask.ttl))
        };
        let committed = match store.commit(&commit).await {
            // It no longer vouches for what it has acknowledged.
            Err(error) if error.kind() == ErrorKind::Unsafe => {
                tracing::warn!(error = %format_args!("{error:#}"), slot = %tenure.slot, "the slot is given up");
                return Ok(Extended::Lost(Loss::Regressed));
            }
            committed => committed?,
        };
        let look = match committed {
            Committed::Done { version, expires, look, .. } => {
                let renewed = ask.now;
                let held = Tenure { version, expires, horizon, renewed, ..tenure.clone() };
                if is_other_namespace(look.meta.as_ref(), tenure) {
                    leave(store, &held).await;
                    return Ok(Extended::Lost(Loss::Vanished));
                }
                return Ok(Extended::Held(acknowledged(held, ask, &look)));
            }
            Committed::Conflict(look) => look,
        };
        let tried = (look.history.id == history).then_some(known.0);
        known = match seen(&look, tenure, tried) {
            Ok(_) if !rules::goes_on(tenure, &look.history) => {
                return Ok(Extended::Lost(Loss::Lapsed));
            }
            Ok(seen) => seen,
            Err(loss) => return Ok(Extended::Lost(loss)),
        };
        history = look.history.id;
    }
    Err(crowded(store, Act::Extend))
}

/// Ends the presence of a tenure that is over, so that nobody waits for it. Its horizon stays.
async fn leave<S: Store + ?Sized>(store: &S, tenure: &Tenure) {
    if let Err(error) = release(store, tenure, tenure.horizon).await {
        tracing::warn!(error = %format_args!("{error:#}"), slot = %tenure.slot, "a slot that is lost may look held for a while");
    }
}

/// The tenure with what an answer says of the clock and of what has settled.
fn acknowledged(mut tenure: Tenure, ask: &Ask, look: &Look) -> Tenure {
    let acknowledged = written(look).map(|written| (written.clock, tenure.horizon));
    let mut settling = tenure.settling.after(&look.history, acknowledged);
    if look.history.id.is_empty() {
        // Nothing that was acknowledged is ever lost.
        settling.settled = tenure.horizon;
    }
    tenure.usable =
        rules::usable_then(&tenure, &settling, ask.window_ms, &look.history, look.clock);
    tenure.store_now = look.clock;
    tenure.settling = settling;
    tenure
}

pub(super) async fn release<S: Store + ?Sized>(
    store: &S,
    tenure: &Tenure,
    last: UnixMs,
) -> Result<Released, Error> {
    let mut known = (tenure.version, tenure.record());
    for _ in 0..ROUNDS_MAX {
        let record = match rules::release(&known.1, tenure, last) {
            Ok(record) => record,
            // An earlier sending was carried out, and its answer was lost.
            Err(Loss::Released) if known.1.released => return Ok(Released::Done),
            // Its horizon is one of the past: it must not become the next floor.
            Err(Loss::Regressed) => return Err(went_back(store)),
            Err(_) => return Ok(Released::NotHeld),
        };
        let commit = commit(Act::Release, tenure, known.0, record, PresenceChange::Ended);
        let look = match store.commit(&commit).await? {
            Committed::Done { .. } => return Ok(Released::Done),
            Committed::Conflict(look) => look,
        };
        known = match seen(&look, tenure, Some(known.0)) {
            Ok(seen) => seen,
            Err(_) => return Ok(Released::NotHeld),
        };
    }
    Err(crowded(store, Act::Release))
}

fn went_back<S: Store + ?Sized>(store: &S) -> Error {
    let why = "the store went back in its history: was it restored from a backup? run frazil store \
               quarantine, then restart";
    Error::new(ErrorKind::Unsafe, Act::Release.word(), store, why)
}

fn commit(
    act: Act,
    tenure: &Tenure,
    version: Version,
    record: Record,
    presence_change: PresenceChange,
) -> Commit {
    let change = Change {
        slot: tenure.slot.clone(),
        version,
        nonce: Some(tenure.nonce),
        present: Present::Holder,
        record,
        presence_change,
    };
    Commit { act, meta: None, history: None, changes: vec![change] }
}

/// What a conflict shows of the tenure's slot. `tried`: the version that the commit named, if nothing
/// else than the slot can have stood against it.
///
/// # Errors
/// Why the tenure is over, if the look alone says so.
fn seen(look: &Look, tenure: &Tenure, tried: Option<Version>) -> Result<(Version, Record), Loss> {
    if is_other_namespace(look.meta.as_ref(), tenure) {
        return Err(Loss::Vanished);
    }
    let Some((version, Found::Known(record))) =
        look.entry(&tenure.slot).map(|entry| (entry.version, &entry.found))
    else {
        return Err(Loss::Vanished);
    };
    if Some(version) == tried && record.nonce == Some(tenure.nonce) {
        // Somebody else is present and about to write.
        let (token, holder) = (record.token, record.holder.clone());
        return Err(Loss::Superseded { token, holder });
    }
    Ok((version, record.clone()))
}

/// Whether the namespace is not the one in which the slot was acquired: meta is gone, or was created
/// anew.
fn is_other_namespace(meta: Option<&Versioned<Meta>>, tenure: &Tenure) -> bool {
    meta.is_none_or(|meta| meta.value.incarnation != tenure.incarnation)
}
