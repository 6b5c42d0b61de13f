//! The subject of the suite: ways to open the store, and ways to hurt it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use frazil_coord::internal::rules;
use frazil_coord::internal::time::unix_ms;
use frazil_coord::internal::{Acquired, Ask, Choice, Claim, FORMAT, Leasing, Tenure};
use frazil_coord::{
    Act, Change, Commit, Entry, Found, Group, Meta, Namespace, Nonce, Presence, PresenceChange,
    Present, Put, Record, Slot, Store, Token, Version, Versioned,
};

use super::Violation;

/// A store under test. Every [`open`](Subject::open) is a client of its own, as in another process.
#[async_trait]
pub trait Subject: std::fmt::Debug + Send + Sync {
    /// Connects to the store.
    async fn open(&self, namespace: &Namespace) -> Result<Arc<dyn Store>, frazil_coord::Error>;

    /// Makes the presence of this tenure lapse, by the means of the store: waits its time out,
    /// expires the session, revokes the lease. The holder may not notice.
    async fn lapse(&self, holder: &Arc<dyn Store>, tenure: &Tenure) -> Result<(), Violation>;

    /// Deletes the record of a slot (and whatever presence it has) behind everybody's back.
    async fn forget(&self, namespace: &Namespace, slot: &Slot) -> Result<(), Violation>;

    /// Deletes everything in the namespace.
    async fn wipe(&self, namespace: &Namespace) -> Result<(), Violation>;

    /// A client of the namespace that cannot reach the store any more. `None` if the store has no
    /// way of being out of reach; the case about it then passes without a look.
    async fn unreachable(
        &self,
        _namespace: &Namespace,
    ) -> Result<Option<Arc<dyn Store>>, Violation> {
        Ok(None)
    }

    /// How long presence lasts in the cases: short where lapsing has to be waited for.
    fn ttl(&self) -> Duration {
        Duration::from_secs(30)
    }
}

/// One case's namespace, with its meta record written, and short words for what cases do.
#[derive(Debug)]
pub struct Bench<'a> {
    subject: &'a dyn Subject,
    namespace: Namespace,
    /// The first client.
    pub a: Arc<dyn Store>,
    /// Another client.
    pub b: Arc<dyn Store>,
    /// Meta as it was created.
    pub meta: Versioned<Meta>,
    /// Now, when the case began: the clock of the case stands still unless the case moves it.
    pub now: u64,
}

/// The window limit in the cases.
pub(super) const WINDOW_MS: u64 = 600_000;
/// Half of how far a clock may differ from the store's.
pub(super) const SOON_MS: u64 = frazil_coord::internal::rules::CLOCK_BOUND_MS / 2;
/// The last worker of the pool in the cases.
pub(super) const LAST_WORKER: u32 = 63;

impl<'a> Bench<'a> {
    pub(super) async fn open(subject: &'a dyn Subject, case: &str) -> Result<Self, Violation> {
        let mint = Nonce::mint().map_err(Violation::new)?;
        let words: String = case.split_whitespace().take(3).collect::<Vec<_>>().join("-");
        let plain = words.replace(|c: char| !c.is_ascii_alphanumeric() && c != '-', "");
        let name = format!("{plain}-{}", &mint.to_string()[..12]);
        let namespace: Namespace = name.parse().map_err(Violation::new)?;
        let (a, b) = (subject.open(&namespace).await?, subject.open(&namespace).await?);
        let now = unix_ms();
        let meta = meta(mint, now);
        match a.put_meta(None, &meta).await? {
            Put::Done(version) => {
                let meta = Versioned { version, value: meta };
                Ok(Self { subject, namespace, a, b, meta, now })
            }
            Put::Conflict => Err(Violation::new("meta exists in a namespace that is new")),
        }
    }

    /// One more client.
    pub async fn client(&self) -> Result<Arc<dyn Store>, Violation> {
        Ok(self.subject.open(&self.namespace).await?)
    }

    /// A claim with a new nonce.
    pub fn claim(&self, choice: Choice) -> Result<Claim, Violation> {
        Ok(Claim {
            choice,
            nonce: Nonce::mint().map_err(Violation::new)?,
            holder: "somebody".into(),
            info: BTreeMap::from([("host".into(), "here".into())]),
            ttl: self.subject.ttl(),
            now: self.now,
            ask: self.now + 90_000,
            window_ms: WINDOW_MS,
            quarantine: 0,
            meta: self.meta.version,
        })
    }

    /// A claim of any worker.
    pub fn any(&self) -> Result<Claim, Violation> {
        self.claim(Choice::Any { first: 0, last: LAST_WORKER, favourite: None })
    }

    /// A claim of one slot as it is now.
    pub async fn this(&self, slot: &Slot) -> Result<Claim, Violation> {
        let version = self.entry(slot).await?.map_or(Version(0), |entry| entry.version);
        self.claim(Choice::This(slot.clone(), version))
    }

    /// The commit by which a claim would take the first possible of these slots as they are now.
    pub async fn commit(&self, claim: &Claim, slots: &[Slot]) -> Result<Commit, Violation> {
        let look = self.b.read(slots).await?;
        let mut changes = Vec::new();
        for slot in slots {
            let Some(entry) = look.entry(slot) else {
                return Err(Violation::new(format_args!("a reading lacks {slot}: {look:?}")));
            };
            let record =
                rules::acquire(&entry.found, claim, &look.history).map_err(|availability| {
                    Violation::new(format_args!("{slot} is {availability:?}"))
                })?;
            changes.push(Change {
                slot: slot.clone(),
                version: entry.version,
                nonce: entry.nonce(),
                present: Present::Nobody,
                record,
                presence_change: PresenceChange::For(claim.ttl),
            });
        }
        let history = Some(look.history.id);
        Ok(Commit { act: Act::Acquire, meta: Some(claim.meta), history, changes })
    }

    /// A slot as the second client reads it.
    pub async fn look(&self, slot: &Slot) -> Result<Entry, Violation> {
        let look = self.b.read(std::slice::from_ref(slot)).await?;
        match look.entry(slot) {
            Some(entry) => Ok(entry.clone()),
            None => Err(Violation::new(format_args!("a reading lacks {slot}: {look:?}"))),
        }
    }

    /// A claim of one slot as it is now, up to a time so near that a successor can claim to have
    /// reached it: clocks may not differ from the store's by much.
    pub async fn briefly(&self, slot: &Slot) -> Result<Claim, Violation> {
        Ok(Claim { ask: self.now + SOON_MS, ..self.this(slot).await? })
    }

    /// Acquires, and fails the case otherwise.
    pub async fn take(&self, store: &Arc<dyn Store>, claim: &Claim) -> Result<Tenure, Violation> {
        match store.acquire(claim).await? {
            Acquired::Held(tenure) => Ok(tenure),
            other => Err(Violation::new(format_args!("wanted a tenure, got {other:?}"))),
        }
    }

    /// What an extension asks for in the cases.
    #[must_use]
    pub fn ask(&self, horizon: u64) -> Ask {
        Ask { horizon, ttl: self.subject.ttl(), now: self.now, window_ms: WINDOW_MS }
    }

    /// A slot as the second client lists it.
    pub async fn entry(&self, slot: &Slot) -> Result<Option<Entry>, Violation> {
        Ok(self.b.list(slot.group()).await?.into_iter().find(|entry| entry.slot == *slot))
    }

    /// The record of a slot as the second client lists it.
    pub async fn record(&self, slot: &Slot) -> Result<Record, Violation> {
        match self.entry(slot).await?.map(|entry| entry.found) {
            Some(Found::Known(record)) => Ok(record),
            other => Err(Violation::new(format_args!("no record of {slot}: {other:?}"))),
        }
    }

    /// Whether somebody is present in a slot.
    pub async fn is_held(&self, slot: &Slot) -> Result<bool, Violation> {
        let entry = self.entry(slot).await?;
        Ok(entry.is_some_and(|entry| entry.presence != Presence::Free))
    }

    /// The slots that somebody is present in.
    pub async fn held(&self, group: Group) -> Result<usize, Violation> {
        let entries = self.b.list(group).await?;
        Ok(entries.iter().filter(|entry| entry.presence != Presence::Free).count())
    }

    /// See [`Subject::lapse`].
    pub async fn lapse(&self, holder: &Arc<dyn Store>, tenure: &Tenure) -> Result<(), Violation> {
        self.subject.lapse(holder, tenure).await
    }

    /// See [`Subject::forget`].
    pub async fn forget(&self, slot: &Slot) -> Result<(), Violation> {
        self.subject.forget(&self.namespace, slot).await
    }

    /// See [`Subject::unreachable`].
    pub async fn unreachable(&self) -> Result<Option<Arc<dyn Store>>, Violation> {
        self.subject.unreachable(&self.namespace).await
    }

    /// See [`Subject::wipe`].
    pub async fn wipe(&self) -> Result<(), Violation> {
        self.subject.wipe(&self.namespace).await
    }
}

fn meta(incarnation: Nonce, now: u64) -> Meta {
    Meta {
        format: FORMAT,
        incarnation,
        layout: "conformance".into(),
        first_worker: 0,
        last_worker: LAST_WORKER,
        window_ms: WINDOW_MS,
        quarantine: 0,
        token_floor: Token::default(),
        created: now,
    }
}
