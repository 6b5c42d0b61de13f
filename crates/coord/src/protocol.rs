//! The lease protocol: acquire, extend and release, once for all stores.
//!
//! Each is the same three steps: look, decide by [`rules`], and commit what was decided if the slot
//! is still what was seen. An outcome that is not known is found out by committing again: whatever
//! was sent before named the same version, so at most one of the two is carried out. A read alone
//! proves nothing, because the request may still arrive.

mod acquire;
mod forget;
mod hold;

use std::future::Future;

use crate::error::{Error, ErrorKind};
use crate::lease::{Acquired, Ask, Claim, Extended, Forgotten, Guard, Released, Tenure};
use crate::record::{Meta, Record, UnixMs, Version, Versioned};
use crate::rules;
use crate::slot::Slot;
use crate::store::{
    Act, Change, Commit, Committed, Look, PresenceChange, Present, Put, Store, Written,
};

/// How often an act looks again because others were faster. In a crowd, twice is rare.
const ROUNDS_MAX: usize = 16;

/// Leases over any store.
pub trait Leasing: Store {
    /// Takes a slot that nobody is present in, by [`rules::acquire`], if meta still has the version
    /// that the claim names.
    ///
    /// Repeating a claim is safe. While a slot carries the claim's nonce the answer is the same
    /// tenure, even if meta has moved since; and the version makes an outdated repetition fail.
    /// After an error of kind Unknown a claim must be repeated with the same nonce: another one
    /// could leak a slot that one's own presence keeps alive.
    fn acquire(&self, claim: &Claim) -> impl Future<Output = Result<Acquired, Error>> + Send {
        acquire::acquire(self, claim, None)
    }

    /// As [`acquire`](Self::acquire), for one who has just looked at the slot that it wants. If that
    /// was free then, and meta is what the claim is based on, it is not read again: the commit finds out
    /// what has changed since. Anything else is looked at anew.
    fn acquire_seen(
        &self,
        claim: &Claim,
        seen: Option<Look>,
    ) -> impl Future<Output = Result<Acquired, Error>> + Send {
        acquire::acquire(self, claim, seen)
    }

    /// Renews presence and raises the horizon, by [`rules::extend`]. Also after presence has lapsed,
    /// if nobody took the slot. Repeating it is safe.
    fn extend(
        &self,
        tenure: &Tenure,
        ask: &Ask,
    ) -> impl Future<Output = Result<Extended, Error>> + Send {
        hold::extend(self, tenure, ask)
    }

    /// Ends a tenure, by [`rules::release`]: presence ends, and the horizon comes down to `last`,
    /// the last time that was used.
    fn release(
        &self,
        tenure: &Tenure,
        last: UnixMs,
    ) -> impl Future<Output = Result<Released, Error>> + Send {
        hold::release(self, tenure, last)
    }

    /// Writes a record that nobody is present in over the version that was read (0: it must not
    /// exist): for import and repair by an operator.
    fn put(
        &self,
        slot: &Slot,
        expected: Version,
        record: &Record,
    ) -> impl Future<Output = Result<Put, Error>> + Send {
        put(self, slot, expected, record)
    }

    /// Removes an election or a scope that nobody holds, or held a moment ago, by
    /// [`rules::forgettable_after`]. The tokens of whoever holds it next are above all that it had,
    /// whatever clocks show: meta keeps the highest that was forgotten. `now`: by this machine's clock;
    /// the store's counts where it has one.
    fn forget_finished(
        &self,
        slot: &Slot,
        now: UnixMs,
    ) -> impl Future<Output = Result<Forgotten, Error>> + Send {
        forget::forget(self, slot, now)
    }

    /// The namespace's meta record.
    fn meta(&self) -> impl Future<Output = Result<Option<Versioned<Meta>>, Error>> + Send {
        async { Ok(self.read(&[]).await?.meta) }
    }

    /// The store's own clock, if it has one that can be asked.
    fn time(&self) -> impl Future<Output = Result<Option<UnixMs>, Error>> + Send {
        async { Ok(self.read(&[]).await?.clock) }
    }

    /// Whether the store itself lets nobody new in for a while, beside meta's quarantine and the
    /// records' horizons. For people to read: a claim finds out by itself.
    fn guard(&self) -> impl Future<Output = Result<Option<Guard>, Error>> + Send {
        async { Ok(guard(&self.read(&[]).await?)) }
    }

    /// Waits until all that was written before now can no longer be lost. `false`: it may be lost
    /// for as long as anybody waits.
    fn settle_all(&self) -> impl Future<Output = Result<bool, Error>> + Send {
        async {
            match written(&self.read(&[]).await?) {
                Some(written) => self.settle(&written).await,
                None => Ok(true),
            }
        }
    }
}

impl<S: Store + ?Sized> Leasing for S {}

async fn put<S: Store + ?Sized>(
    store: &S,
    slot: &Slot,
    expected: Version,
    record: &Record,
) -> Result<Put, Error> {
    let look = store.read(std::slice::from_ref(slot)).await?;
    let Some(entry) = look.entry(slot).filter(|entry| entry.version == expected) else {
        return Ok(Put::Conflict);
    };
    let change = Change {
        slot: slot.clone(),
        version: expected,
        nonce: entry.nonce(),
        present: Present::Nobody,
        // A release is its holder's own word, which an operator cannot give.
        record: Record { expires: None, released: false, ..record.clone() },
        presence_change: PresenceChange::Ended,
    };
    let commit = Commit { act: Act::Put, meta: None, history: None, changes: vec![change] };
    Ok(match store.commit(&commit).await? {
        Committed::Done { version, .. } => Put::Done(version),
        Committed::Conflict(_) => Put::Conflict,
    })
}

/// See [`Leasing::guard`]: of a look that was had already.
#[must_use]
pub fn guard(look: &Look) -> Option<Guard> {
    let judge = Claim::to_judge(look.meta.as_ref()?, 0);
    let until = rules::history_floor(&judge, &look.history);
    let reason = "the store restarted or another server took over, and may have lost its last \
                  writes: new tenures start above what those can have promised";
    (until > look.clock.unwrap_or(0)).then(|| Guard { until, reason: reason.into() })
}

/// What to settle after an answer, where anything can be lost.
fn written(look: &Look) -> Option<Written> {
    let clock = look.clock.filter(|_| !look.history.id.is_empty())?;
    Some(Written { history: look.history.id.clone(), clock })
}

/// The error of an act that others were faster than again and again.
fn crowded<S: Store + ?Sized>(store: &S, act: Act) -> Error {
    let why = "others wrote at the same time again and again";
    Error::new(ErrorKind::Unavailable, act.word(), store, why)
}
