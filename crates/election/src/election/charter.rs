//! The namespace's meta record, without which nothing can be claimed.

use std::sync::{Arc, Mutex, PoisonError};

use frazil_coord::{
    Birth, Error, ErrorKind, FORMAT, FirstUse, Look, Meta, Nonce, Put, Store, UnixMs, Versioned,
};

/// Meta as it was last read. In a namespace that has none, it is created without a layout: whoever
/// first leases workers there fills it in.
#[derive(Debug)]
pub(super) struct Charter {
    store: Arc<dyn Store>,
    first_use: FirstUse,
    known: Mutex<Option<Versioned<Meta>>>,
}

/// Somebody else may write it between a look and a write; twice is unheard of.
const ROUNDS_MAX: usize = 5;

impl Charter {
    pub(super) const fn new(store: Arc<dyn Store>, first_use: FirstUse) -> Self {
        Self { store, first_use, known: Mutex::new(None) }
    }

    /// Meta, from memory if it was read before. `now`: by a clock that was judged.
    pub(super) async fn meta(&self, now: UnixMs) -> Result<Versioned<Meta>, Error> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match known {
            Some(meta) => Ok(meta),
            None => self.agree("campaign", now, 0).await,
        }
    }

    /// Meta is not what it was.
    pub(super) fn moved(&self) {
        self.keep(None);
    }

    /// Lets nobody who comes from now on use times up to a horizon: the store has forgotten that
    /// they were promised to somebody here.
    pub(super) async fn owe(&self, horizon: UnixMs, now: UnixMs) -> Result<(), Error> {
        self.agree("raise the quarantine", now, horizon).await.map(|_| ())
    }

    /// Meta with at least this quarantine.
    async fn agree(
        &self,
        act: &'static str,
        now: UnixMs,
        owed: UnixMs,
    ) -> Result<Versioned<Meta>, Error> {
        for _ in 0..ROUNDS_MAX {
            let Look { meta, clock, .. } = self.store.read(&[]).await?;
            if let Some(meta) = &meta
                && meta.value.format > FORMAT
            {
                let why = format!("meta has format {}", meta.value.format);
                return Err(Error::new(ErrorKind::NewerFormat, act, &self.store, why));
            }
            let (expected, wanted) = match meta {
                Some(meta) if meta.value.quarantine >= owed => {
                    self.keep(Some(meta.clone()));
                    return Ok(meta);
                }
                Some(Versioned { version, value }) => {
                    (Some(version), Meta { quarantine: owed, ..value })
                }
                // The store's clock is nearer to everybody's than any other.
                None => (None, self.birth(act, clock.unwrap_or(now), owed)?),
            };
            if let Put::Done(version) = self.store.put_meta(expected, &wanted).await? {
                let meta = Versioned { version, value: wanted };
                self.keep(Some(meta.clone()));
                return Ok(meta);
            }
        }
        let why = "the namespace's meta record comes and goes";
        Err(Error::new(ErrorKind::Unavailable, act, &self.store, why))
    }

    fn birth(&self, act: &'static str, now: UnixMs, owed: UnixMs) -> Result<Meta, Error> {
        let incarnation = Nonce::mint()
            .map_err(|error| Error::new(ErrorKind::Unavailable, act, &self.store, error))?;
        let first_use = self.first_use;
        let birth = Birth {
            layout: None,
            window_ms: 0,
            first_use,
            was_there: false,
            owed,
            now,
            incarnation,
        };
        Ok(birth.meta())
    }

    fn keep(&self, meta: Option<Versioned<Meta>>) {
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = meta;
    }
}
