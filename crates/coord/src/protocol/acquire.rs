//! The acquisition of a slot.

use super::{ROUNDS_MAX, crowded, written};
use crate::choose::rank_free;
use crate::error::{Error, ErrorKind};
use crate::lease::{Acquired, Census, Choice, Claim};
use crate::record::{Record, UnixMs, Version};
use crate::rules;
use crate::slot::Slot;
use crate::store::{
    Act, Change, Commit, Committed, Entry, Found, History, Look, Presence, PresenceChange, Present,
    Store, Wanted,
};

pub(super) async fn acquire<S: Store + ?Sized>(
    store: &S,
    claim: &Claim,
    seen: Option<Look>,
) -> Result<Acquired, Error> {
    match &claim.choice {
        Choice::This(slot, read) => {
            let look = match seen.filter(|look| was_free(look, claim, slot, *read)) {
                Some(look) => look,
                None => store.read(std::slice::from_ref(slot)).await?,
            };
            this(store, claim, (slot, *read), look).await
        }
        Choice::Any { first, last, favourite } => {
            let wanted = Wanted {
                first: *first,
                last: *last,
                favourite: *favourite,
                nonce: claim.nonce,
                now: claim.now,
            };
            any(store, claim, &wanted).await
        }
    }
}

/// Whether a look that was had before lets the claim be tried. Nothing else can be told by it: what it
/// shows may be older than what the claim did when it was sent before.
fn was_free(look: &Look, claim: &Claim, slot: &Slot, read: Version) -> bool {
    let is_free = |entry: &Entry| entry.version == read && entry.presence == Presence::Free;
    look.meta.as_ref().is_some_and(|meta| meta.version == claim.meta)
        && look.entry(slot).is_some_and(is_free)
}

/// Takes the slot if it is free and still what was read.
async fn this<S: Store + ?Sized>(
    store: &S,
    claim: &Claim,
    (slot, read): (&Slot, Version),
    mut look: Look,
) -> Result<Acquired, Error> {
    let claim = &by_store_clock(claim, &look);
    for _ in 0..ROUNDS_MAX {
        if let Some(answer) = answered(store, claim, &look).await? {
            return Ok(answer);
        }
        let Some(entry) = look.entry(slot) else { return Ok(Acquired::Taken) };
        if entry.version != read || entry.presence != Presence::Free {
            return Ok(Acquired::Taken);
        }
        let record = match rules::acquire(&entry.found, claim, &look.history) {
            Ok(record) => record,
            Err(availability) => return Ok(Acquired::Full(Census::of(availability))),
        };
        let record = match &look.meta {
            Some(meta) => rules::above_forgotten(record, &entry.found, &meta.value),
            None => return Ok(Acquired::MetaMoved),
        };
        let attempts = vec![Attempt { entry: entry.clone(), record }];
        match attempt(store, claim, look.history, attempts).await? {
            Attempted::Answer(answer) => return Ok(answer),
            Attempted::LookAgain(now) => look = now,
        }
    }
    Err(crowded(store, Act::Acquire))
}

/// A leader uses no times, so that its own clock does not matter: its token is the store's time
/// where the store has a clock.
fn by_store_clock(claim: &Claim, look: &Look) -> Claim {
    let now = look.clock.filter(|_| claim.window_ms == 0).unwrap_or(claim.now);
    Claim { now, ..claim.clone() }
}

/// Takes any free worker of the range.
async fn any<S: Store + ?Sized>(
    store: &S,
    claim: &Claim,
    wanted: &Wanted,
) -> Result<Acquired, Error> {
    for _ in 0..ROUNDS_MAX {
        let free_slots = store.free_slots(wanted).await?;
        if let Some(answer) = answered(store, claim, &free_slots.look).await? {
            return Ok(answer);
        }
        let history = free_slots.look.history.clone();
        let (best, census) = rank_free(free_slots, wanted, claim);
        let attempts: Vec<Attempt> = best
            .into_iter()
            .filter_map(|entry| {
                let record = rules::acquire(&entry.found, claim, &history).ok()?;
                Some(Attempt { entry, record })
            })
            .take(store.changes_max())
            .collect();
        if attempts.is_empty() {
            return Ok(Acquired::Full(census));
        }
        match attempt(store, claim, history, attempts).await? {
            Attempted::Answer(answer) => return Ok(answer),
            Attempted::LookAgain(look) => {
                if let Some(answer) = answered(store, claim, &look).await? {
                    return Ok(answer);
                }
            }
        }
    }
    Err(crowded(store, Act::Acquire))
}

/// What a look alone says of a claim: it was served before, or it cannot be.
async fn answered<S: Store + ?Sized>(
    store: &S,
    claim: &Claim,
    look: &Look,
) -> Result<Option<Acquired>, Error> {
    // Before anything else: what is held already stays held, whatever meta says now.
    if let Some((entry, record)) = look.carrying(claim.nonce) {
        if !rules::is_served(record, &look.history) {
            // A later holder may have been lost. The claim is over, and its nonce with it.
            return Ok(Some(Acquired::Taken));
        }
        if entry.presence == Presence::Free {
            return return_to(store, claim, entry, record).await;
        }
        let taken = Taken {
            slot: entry.slot.clone(),
            read: entry.version,
            version: entry.version,
            record: record.clone(),
            // Over what it was acquired is not known any more.
            is_takeover: rules::is_takeover(&Found::Lost, claim, &look.history),
        };
        return hold(store, claim, taken, look).await.map(Some);
    }
    if look.meta.as_ref().map(|meta| meta.version) != Some(claim.meta) {
        return Ok(Some(Acquired::MetaMoved));
    }
    // Judged before anything is written: what is written with a wrong clock blocks others.
    let is_off = |clock: &UnixMs| clock.abs_diff(claim.now) > rules::CLOCK_BOUND_MS;
    Ok(look.clock.filter(is_off).map(|store_now| Acquired::ClockOff { store_now }))
}

/// Writes what the claim was served with once more, so that its holder is present. `None`: somebody
/// else was faster.
async fn return_to<S: Store + ?Sized>(
    store: &S,
    claim: &Claim,
    entry: &Entry,
    record: &Record,
) -> Result<Option<Acquired>, Error> {
    let change = Change {
        slot: entry.slot.clone(),
        version: entry.version,
        nonce: Some(claim.nonce),
        present: Present::Holder,
        record: record.clone(),
        presence_change: PresenceChange::For(claim.ttl),
    };
    let commit = Commit { act: Act::Acquire, meta: None, history: None, changes: vec![change] };
    let Committed::Done { version, expires, look, .. } = store.commit(&commit).await? else {
        return Ok(None);
    };
    let taken = Taken {
        slot: entry.slot.clone(),
        read: entry.version,
        version,
        record: Record { expires, ..record.clone() },
        is_takeover: rules::is_takeover(&Found::Lost, claim, &look.history),
    };
    hold(store, claim, taken, &look).await.map(Some)
}

/// A slot as it was seen, with what is to be written to it.
struct Attempt {
    entry: Entry,
    record: Record,
}

enum Attempted {
    Answer(Acquired),
    LookAgain(Look),
}

async fn attempt<S: Store + ?Sized>(
    store: &S,
    claim: &Claim,
    history: History,
    mut attempts: Vec<Attempt>,
) -> Result<Attempted, Error> {
    let changes = attempts.iter().map(|Attempt { entry, record }| Change {
        slot: entry.slot.clone(),
        version: entry.version,
        nonce: entry.nonce(),
        present: Present::Nobody,
        record: record.clone(),
        presence_change: PresenceChange::For(claim.ttl),
    });
    let commit = Commit {
        act: Act::Acquire,
        meta: Some(claim.meta),
        history: Some(history.id),
        changes: changes.collect(),
    };
    match store.commit(&commit).await {
        Ok(Committed::Conflict(look)) => Ok(Attempted::LookAgain(look)),
        Ok(Committed::Done { index, version, expires, look }) => {
            let Attempt { entry, record } = attempts.swap_remove(index);
            let taken = Taken {
                is_takeover: rules::is_takeover(&entry.found, claim, &look.history),
                slot: entry.slot,
                read: entry.version,
                version,
                record: Record { expires, ..record },
            };
            hold(store, claim, taken, &look).await.map(Attempted::Answer)
        }
        Err(error) if error.kind() == ErrorKind::Unknown && attempts.len() == 1 => {
            let Entry { slot, version, .. } = attempts.swap_remove(0).entry;
            tracing::warn!(error = %format_args!("{error:#}"), %slot, "it is not known yet whether the slot was taken");
            Ok(Attempted::Answer(Acquired::Unsure(slot, version)))
        }
        // The same claim, repeated, gets the slot that it got before, if it did.
        Err(error) => Err(error),
    }
}

/// A slot that carries the claim's nonce.
struct Taken {
    slot: Slot,
    /// The version that it was taken over.
    read: Version,
    version: Version,
    record: Record,
    is_takeover: bool,
}

/// The tenure of a slot that was taken, once it may be used.
async fn hold<S: Store + ?Sized>(
    store: &S,
    claim: &Claim,
    taken: Taken,
    look: &Look,
) -> Result<Acquired, Error> {
    let written = written(look);
    let up_to = look.history.settled;
    let mut has_settled = written.as_ref().is_none_or(|written| up_to >= Some(written.clock));
    if let Some(written) = written.as_ref().filter(|_| taken.is_takeover && !has_settled) {
        match store.settle(written).await {
            Ok(true) => has_settled = true,
            Ok(false) => return Ok(Acquired::Unsure(taken.slot, taken.read)),
            Err(error) => {
                tracing::warn!(error = %format_args!("{error:#}"), slot = %taken.slot, "whether the takeover lasts is not known yet");
                return Ok(Acquired::Unsettled(taken.slot, taken.read, error));
            }
        }
    }
    let incarnation = match &look.meta {
        Some(meta) => meta.value.incarnation,
        None => return Ok(Acquired::MetaMoved),
    };
    let mut tenure =
        rules::tenure(taken.slot, claim.nonce, taken.version, taken.record, incarnation);
    tenure.usable = rules::usable_at_first(tenure.horizon, claim, has_settled, &look.history);
    tenure.store_now = look.clock;
    let acknowledged = written.map(|written| (written.clock, tenure.horizon));
    tenure.settling = tenure.settling.after(&look.history, acknowledged);
    if has_settled {
        tenure.settling.settled = tenure.horizon;
    }
    Ok(Acquired::Held(tenure))
}
