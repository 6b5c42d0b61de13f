//! The memory store keeps the contract.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use frazil_conformance::{self as conformance, Subject, Violation};
use frazil_coord::stores::memory::MemoryStore;
use frazil_coord::{Error, Namespace, Slot, Store, Tenure};

#[derive(Debug, Default)]
struct Memory(Mutex<HashMap<Namespace, MemoryStore>>);

impl Memory {
    fn of(&self, namespace: &Namespace) -> MemoryStore {
        self.0.lock().unwrap().entry(namespace.clone()).or_default().clone()
    }
}

#[async_trait]
impl Subject for Memory {
    async fn open(&self, namespace: &Namespace) -> Result<Arc<dyn Store>, Error> {
        Ok(Arc::new(self.of(namespace)))
    }

    async fn lapse(&self, _: &Arc<dyn Store>, tenure: &Tenure) -> Result<(), Violation> {
        for store in self.0.lock().unwrap().values() {
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
}

#[tokio::test]
async fn the_memory_store_conforms() {
    conformance::run(&Memory::default()).await.unwrap();
}
