//! The namespace's meta record, without which nothing can be claimed.

use std::sync::{Arc, Mutex, PoisonError};

use frazil_coord::time::unix_ms;
use frazil_coord::{Error, ErrorKind, FORMAT, Leasing, Meta, Nonce, Store, Versioned};

/// Meta as it was last read. In a namespace that has none, it is created without a layout: whoever
/// first leases workers there fills it in.
#[derive(Debug)]
pub(super) struct Charter {
    store: Arc<dyn Store>,
    known: Mutex<Option<Versioned<Meta>>>,
}

/// Somebody else may create it between a look and a write; twice is unheard of.
const ROUNDS_MAX: usize = 5;

impl Charter {
    pub(super) const fn new(store: Arc<dyn Store>) -> Self {
        Self { store, known: Mutex::new(None) }
    }

    /// Meta, from memory if it was read before.
    pub(super) async fn meta(&self) -> Result<Versioned<Meta>, Error> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match known {
            Some(meta) => Ok(meta),
            None => {
                let meta = self.read().await?;
                *self.known.lock().unwrap_or_else(PoisonError::into_inner) = Some(meta.clone());
                Ok(meta)
            }
        }
    }

    /// Meta is not what it was.
    pub(super) fn moved(&self) {
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    async fn read(&self) -> Result<Versioned<Meta>, Error> {
        const ACT: &str = "campaign";
        for _ in 0..ROUNDS_MAX {
            if let Some(meta) = self.store.meta().await? {
                if meta.value.format > FORMAT {
                    let why = format!("meta has format {}", meta.value.format);
                    return Err(Error::new(ErrorKind::NewerFormat, ACT, &self.store, why));
                }
                return Ok(meta);
            }
            let incarnation = Nonce::mint()
                .map_err(|error| Error::new(ErrorKind::Unavailable, ACT, &self.store, error))?;
            // Whatever became of it, the next look tells.
            let _ = self.store.put_meta(None, &Meta::blank(incarnation, unix_ms())).await?;
        }
        let why = "the namespace's meta record comes and goes";
        Err(Error::new(ErrorKind::Unavailable, ACT, &self.store, why))
    }
}
