//! The memory store as a subject: the shortest example of one, and for stores that wrap another.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use frazil_coord::MemoryStore;
use frazil_coord::internal::Tenure;
use frazil_coord::{Error, Namespace, Slot, Store};

use crate::{Chances, Faulty, Subject, Violation};

/// Memory stores, one for each namespace, each in a wrapper.
pub struct InMemory {
    stores: Mutex<HashMap<Namespace, MemoryStore>>,
    wrap: fn(Arc<dyn Store>) -> Arc<dyn Store>,
}

impl InMemory {
    /// The memory store as it is.
    #[must_use]
    pub fn plain() -> Self {
        Self::wrapped(|store| store)
    }

    /// The memory store inside another one.
    #[must_use]
    pub fn wrapped(wrap: fn(Arc<dyn Store>) -> Arc<dyn Store>) -> Self {
        Self { stores: Mutex::default(), wrap }
    }

    fn of(&self, namespace: &Namespace) -> MemoryStore {
        self.stores().entry(namespace.clone()).or_default().clone()
    }

    fn stores(&self) -> MutexGuard<'_, HashMap<Namespace, MemoryStore>> {
        // Every change is complete before anything can panic.
        self.stores.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Subject for InMemory {
    async fn open(&self, namespace: &Namespace) -> Result<Arc<dyn Store>, Error> {
        Ok((self.wrap)(Arc::new(self.of(namespace))))
    }

    async fn lapse(&self, _: &Arc<dyn Store>, tenure: &Tenure) -> Result<(), Violation> {
        for store in self.stores().values() {
            store.expire(&tenure.slot);
        }
        Ok(())
    }

    async fn forget(&self, namespace: &Namespace, slot: &Slot) -> Result<(), Violation> {
        self.of(namespace).lose(slot);
        Ok(())
    }

    async fn wipe(&self, namespace: &Namespace) -> Result<(), Violation> {
        self.of(namespace).wipe();
        Ok(())
    }

    async fn unreachable(&self, of: &Namespace) -> Result<Option<Arc<dyn Store>>, Violation> {
        let never = Chances { request_lost: 1000, ..Chances::default() };
        let cut = Faulty::new(Arc::new(self.of(of)), never, 7);
        Ok(Some((self.wrap)(Arc::new(cut))))
    }
}

impl fmt::Debug for InMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("InMemory")
    }
}
