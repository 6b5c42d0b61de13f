//! Wrong times in a namespace, such as only a wrong clock can have written, and how they come down.
//!
//! Where the store has no clock of its own, a first node whose clock is a year ahead puts the
//! quarantine a year ahead, and everybody else waits for that. What such a node issued stays issued:
//! the records of its workers keep their horizons, so that nobody uses them before. Only the
//! quarantine, which stops all workers, comes down.

use crate::error::{Error, ErrorKind};
use crate::new_namespace::{FirstUse, NewNamespace};
use crate::nonce::Nonce;
use crate::record::{Meta, Record, UnixMs, Versioned};
use crate::rules::is_plainly_wrong;
use crate::slot::{Group, Slot};
use crate::store::{Entry, Found, Presence, Put, Store};

/// What is plainly wrong in a namespace, at a time that is taken for right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrongTimes {
    /// Up to when everybody waits, if that is plainly wrong.
    pub quarantine: Option<UnixMs>,
    /// Slots that are out of use until their horizon has passed.
    pub slots: Vec<(Slot, UnixMs)>,
    /// Slots whose holder is present and has a clock that is plainly wrong, and who that is.
    pub held: Vec<(Slot, String)>,
    /// Whether whatever there is in the namespace was written by a clock that was wrong.
    pub is_all: bool,
}

/// What became of the wrong times of a namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lowered {
    /// What was found.
    pub found: WrongTimes,
    /// What the quarantine is now.
    pub quarantine: UnixMs,
    /// The time that was taken for right.
    pub now: UnixMs,
}

/// Why wrong times were not brought down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotLowered {
    /// There is no namespace.
    NoNamespace,
    /// Somebody with such a clock is present, and would write them again.
    Held(WrongTimes),
    /// The store failed.
    Store(Error),
}

/// Others may write meta between a look and a write; often is unheard of.
const ROUNDS_MAX: usize = 5;

impl WrongTimes {
    /// Looks for them.
    #[must_use]
    pub fn find(meta: &Meta, entries: &[Entry], now: UnixMs) -> Self {
        let wrong = |time: UnixMs| is_plainly_wrong(time, now);
        let known = || {
            entries.iter().filter_map(|entry| match &entry.found {
                Found::Known(record) => Some((entry, record)),
                Found::New | Found::Lost => None,
            })
        };
        let slots = known().filter(|(_, record)| wrong(record.horizon));
        let held = known().filter(|(entry, record)| {
            entry.presence != Presence::Free && (wrong(record.horizon) || wrong(record.renewed))
        });
        let is_of_wrong_clock = |record: &Record| wrong(record.renewed);
        Self {
            quarantine: Some(meta.quarantine).filter(|quarantine| wrong(*quarantine)),
            slots: slots.map(|(entry, record)| (entry.slot.clone(), record.horizon)).collect(),
            held: held.map(|(entry, record)| (entry.slot.clone(), record.holder.clone())).collect(),
            is_all: wrong(meta.created)
                && known().count() == entries.len()
                && known().all(|(_, record)| is_of_wrong_clock(record)),
        }
    }
}

/// Brings down a quarantine that is plainly wrong. Horizons stay: what was issued up to them is issued.
///
/// If all there is was written by a wrong clock, the namespace begins anew, as if its first node came
/// now: whoever still holds times of one that was forgotten finds another incarnation, and says so.
/// Otherwise the quarantine may have hidden what such a holder said, so that a window must pass.
///
/// The time that counts is the store's where it has a clock, and otherwise what `now` gives.
///
/// # Errors
/// Why nothing was changed.
pub async fn lower(
    store: &dyn Store,
    first_use: FirstUse,
    now: impl Fn() -> UnixMs + Send,
) -> Result<Lowered, NotLowered> {
    for _ in 0..ROUNDS_MAX {
        let entries = list_all(store).await?;
        let look = store.read(&[]).await?;
        let meta = look.meta.ok_or(NotLowered::NoNamespace)?;
        let now = look.clock.unwrap_or_else(&now);
        let found = WrongTimes::find(&meta.value, &entries, now);
        let Some(_) = found.quarantine else {
            let quarantine = meta.value.quarantine;
            return Ok(Lowered { found, quarantine, now });
        };
        if !found.held.is_empty() {
            return Err(NotLowered::Held(found));
        }
        let incarnation = Nonce::mint()
            .map_err(|error| Error::new(ErrorKind::Unavailable, "lower", store, error))?;
        let lowered = lowered(&meta, &found, first_use, (now, incarnation));
        if let Put::Done(_) = store.put_meta(Some(meta.version), &lowered).await? {
            return Ok(Lowered { found, quarantine: lowered.quarantine, now });
        }
    }
    let why = "others wrote meta at the same time again and again";
    Err(Error::new(ErrorKind::Unavailable, "lower", store, why).into())
}

async fn list_all(store: &dyn Store) -> Result<Vec<Entry>, Error> {
    let mut entries = Vec::new();
    for group in Group::ALL.iter().copied() {
        entries.extend(store.list(group).await?);
    }
    Ok(entries)
}

fn lowered(
    meta: &Versioned<Meta>,
    found: &WrongTimes,
    first_use: FirstUse,
    (now, incarnation): (UnixMs, Nonce),
) -> Meta {
    let new = NewNamespace {
        layout: None,
        window_ms: meta.value.window_ms,
        first_use,
        was_there: !found.is_all,
        owed: 0,
        now,
        incarnation,
    };
    let Meta { quarantine, created, incarnation, .. } = new.meta();
    match found.is_all {
        true => Meta { quarantine, created, incarnation, ..meta.value.clone() },
        // Those who hold something here go on.
        false => Meta { quarantine, ..meta.value.clone() },
    }
}

impl From<Error> for NotLowered {
    fn from(error: Error) -> Self {
        Self::Store(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lease::Claim;
    use crate::protocol::Leasing;
    use crate::record::Version;
    use crate::repair::replacement;
    use crate::rules::{SILENCE_MS, WINDOW_MAX_MS};
    use crate::stores::memory::MemoryStore;

    const NOW: UnixMs = 1_700_000_000_000;
    const YEAR_MS: u64 = 365 * 86_400_000;
    const WINDOW_MS: u64 = 600_000;

    fn meta(created: UnixMs) -> Meta {
        Meta {
            layout: "layout".into(),
            last_worker: 7,
            window_ms: WINDOW_MS,
            quarantine: NOW + YEAR_MS,
            ..Meta::blank(Nonce::from_bits(1), created)
        }
    }

    /// A store whose namespace was created at a time, with a worker that was left at another.
    async fn store(created: UnixMs, left: UnixMs) -> MemoryStore {
        let (store, meta) = (MemoryStore::new(), meta(created));
        assert!(matches!(store.put_meta(None, &meta).await, Ok(Put::Done(_))));
        let judge = Claim::to_judge(&Versioned { version: Version(1), value: meta }, left);
        let record = Record { horizon: left + 32_000, ..replacement(&judge) };
        let put = store.put(&Slot::worker(3), Version(0), &record).await;
        assert!(matches!(put, Ok(Put::Done(_))));
        store
    }

    async fn lower_now(store: &MemoryStore) -> Lowered {
        lower(store, FirstUse::AfterSilence, || NOW).await.unwrap()
    }

    async fn horizon(store: &MemoryStore) -> UnixMs {
        let entries = store.list(Group::Workers).await.unwrap();
        let Found::Known(record) = &entries[0].found else { panic!("{entries:?}") };
        record.horizon
    }

    #[tokio::test]
    async fn a_namespace_of_a_wrong_clock_alone_begins_anew_and_its_workers_stay_out() {
        let wrong = NOW + YEAR_MS;
        let store = store(wrong, wrong).await;
        let lowered = lower_now(&store).await;
        assert_eq!(lowered.found.quarantine, Some(NOW + YEAR_MS));
        assert_eq!(lowered.found.slots, [(Slot::worker(3), wrong + 32_000)]);
        assert_eq!(lowered.quarantine, NOW + SILENCE_MS);
        let now = store.meta().await.unwrap().unwrap().value;
        assert_eq!((now.quarantine, now.created), (NOW + SILENCE_MS, NOW));
        assert_ne!(now.incarnation, meta(0).incarnation, "holders of one forgotten must notice");
        assert_eq!((now.layout.as_str(), now.last_worker), ("layout", 7));
        assert_eq!(horizon(&store).await, wrong + 32_000, "what was issued is issued");
        // Once more changes nothing.
        let again = lower_now(&store).await;
        assert_eq!((again.found.quarantine, again.quarantine), (None, NOW + SILENCE_MS));
    }

    #[tokio::test]
    async fn whoever_held_something_by_a_right_clock_is_waited_for_and_goes_on() {
        for (created, left) in
            [(NOW - 1000, NOW + YEAR_MS), (NOW + YEAR_MS, NOW - 1000), (NOW - 2000, NOW - 1000)]
        {
            let store = store(created, left).await;
            let lowered = lower_now(&store).await;
            assert!(lowered.quarantine > NOW + WINDOW_MS, "{created} {left}");
            let now = store.meta().await.unwrap().unwrap().value;
            assert_eq!(now.incarnation, meta(0).incarnation);
            assert_eq!(now.quarantine, lowered.quarantine);
        }
    }

    #[tokio::test]
    async fn a_record_that_is_lost_may_be_anybodys() {
        let store = store(NOW + YEAR_MS, NOW + YEAR_MS).await;
        store.lose(&Slot::worker(3));
        assert!(lower_now(&store).await.quarantine > NOW + WINDOW_MS);
    }

    #[tokio::test]
    async fn a_holder_whose_clock_is_wrong_must_go_first() {
        let wrong = NOW + YEAR_MS;
        let store = store(wrong, wrong).await;
        let meta = store.meta().await.unwrap().unwrap();
        let claim = Claim {
            nonce: Nonce::from_bits(9),
            holder: "astray".into(),
            ttl: std::time::Duration::from_secs(30),
            now: wrong + 10,
            ..Claim::to_judge(&meta, wrong)
        };
        store.acquire(&claim).await.unwrap();
        let refused = lower(&store, FirstUse::AfterSilence, || NOW).await.unwrap_err();
        let NotLowered::Held(found) = refused else { panic!("{refused:?}") };
        assert_eq!(found.held[0].1, "astray");
        assert_eq!(store.meta().await.unwrap().unwrap(), meta, "nothing was written");
    }

    #[tokio::test]
    async fn a_quarantine_that_some_window_explains_stays() {
        let store = MemoryStore::new();
        let refused = lower(&store, FirstUse::AtOnce, || NOW).await.unwrap_err();
        assert_eq!(refused, NotLowered::NoNamespace);
        let quarantine = NOW + WINDOW_MAX_MS;
        let meta = Meta { quarantine, ..meta(NOW) };
        store.put_meta(None, &meta).await.unwrap();
        let lowered = lower_now(&store).await;
        assert_eq!((lowered.found.quarantine, lowered.quarantine), (None, quarantine));
    }
}
