//! Extending and releasing a tenure.

use super::{ROUNDS_MAX, crowded, written};
use crate::error::Error;
use crate::lease::{Ask, Extended, Loss, Released, Tenure};
use crate::record::{Meta, Record, UnixMs, Version, Versioned};
use crate::rules;
use crate::store::{Act, Change, Commit, Committed, Found, Look, Present, Stay, Store};

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
            ..commit(Act::Extend, tenure, known.0, record, Stay::For(ask.ttl))
        };
        let look = match store.commit(&commit).await? {
            Committed::Done { version, expires, look, .. } => {
                if is_other_namespace(look.meta.as_ref(), tenure) {
                    return Ok(Extended::Lost(Loss::Vanished));
                }
                let held = Tenure { version, expires, horizon, ..tenure.clone() };
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

/// The tenure with what an answer says of the clock and of what has settled.
fn acknowledged(mut tenure: Tenure, ask: &Ask, look: &Look) -> Tenure {
    let acknowledged = written(look).map(|written| (written.clock, tenure.horizon));
    let settling = tenure.settling.after(&look.history, acknowledged);
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
            Err(_) => return Ok(Released::NotHeld),
        };
        let commit = commit(Act::Release, tenure, known.0, record, Stay::Ended);
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

fn commit(act: Act, tenure: &Tenure, version: Version, record: Record, stay: Stay) -> Commit {
    let change = Change {
        slot: tenure.slot.clone(),
        version,
        nonce: Some(tenure.nonce),
        present: Present::Holder,
        record,
        stay,
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
