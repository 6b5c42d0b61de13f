//! The file store keeps the contract, and survives what happens to files.

use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use frazil_conformance::{self as conformance, Subject, Violation};
use frazil_coord::Copied;
use frazil_coord::internal::stores::file::FileStore;
use frazil_coord::internal::{Leasing, Tenure};
use frazil_coord::{Error, Group, Namespace, Slot, Store, StoreUrl};

#[derive(Debug)]
struct Directory {
    home: tempfile::TempDir,
    opened: Mutex<Vec<FileStore>>,
}

impl Directory {
    fn new() -> Self {
        Self { home: tempfile::tempdir().unwrap(), opened: Mutex::default() }
    }

    fn path(&self, namespace: &Namespace) -> std::path::PathBuf {
        self.home.path().join(namespace.as_str())
    }
}

fn url(path: &Path) -> StoreUrl {
    format!("file:{}", path.display()).parse().unwrap()
}

#[async_trait]
impl Subject for Directory {
    async fn open(&self, namespace: &Namespace) -> Result<Arc<dyn Store>, Error> {
        let store = FileStore::open(&url(self.home.path()), namespace, Copied::Refuse).await?;
        self.opened.lock().unwrap().push(store.clone());
        Ok(Arc::new(store))
    }

    async fn lapse(&self, _: &Arc<dyn Store>, tenure: &Tenure) -> Result<(), Violation> {
        for store in self.opened.lock().unwrap().iter() {
            store.abandon(&tenure.slot);
        }
        Ok(())
    }

    async fn forget(&self, namespace: &Namespace, slot: &Slot) -> Result<(), Violation> {
        fs::remove_file(self.path(namespace).join(slot.to_string())).map_err(Violation::new)
    }

    async fn wipe(&self, namespace: &Namespace) -> Result<(), Violation> {
        let root = self.path(namespace);
        fs::remove_file(root.join("meta")).map_err(Violation::new)?;
        for group in ["w", "e", "s", "k"] {
            fs::remove_dir_all(root.join(group)).map_err(Violation::new)?;
            fs::create_dir(root.join(group)).map_err(Violation::new)?;
        }
        Ok(())
    }

    async fn unreachable(&self, of: &Namespace) -> Result<Option<Arc<dyn Store>>, Violation> {
        // As on a disk that was unmounted.
        let store = self.open(of).await?;
        fs::rename(self.path(of), self.home.path().join("elsewhere")).map_err(Violation::new)?;
        Ok(Some(store))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_file_store_conforms() {
    conformance::run(&Directory::new()).await.unwrap();
}

#[tokio::test]
async fn to_look_is_to_create_nothing() {
    let home = tempfile::tempdir().unwrap();
    let namespace = Namespace::default();
    let fixed: StoreUrl = format!("static:3?state={}", home.path().display()).parse().unwrap();
    for url in [url(home.path()), fixed] {
        let store = frazil_coord::look(&url, &namespace).await.unwrap();
        assert_eq!(store.meta().await.unwrap(), None);
        assert!(store.list(Group::Workers).await.unwrap().is_empty());
        assert_eq!(store.to_string(), url.to_string());
    }
    assert_eq!(fs::read_dir(home.path()).unwrap().count(), 0);
}
