//! Opening a store and its namespace, and what the failures mean to the shell.

use std::sync::Arc;

use frazil::coord::stores::file::Copied;
use frazil::coord::{Error, ErrorKind, Meta, Store, StoreUrl, Versioned};
use frazil::store_or_default;
use tokio::runtime::Runtime;

use crate::args::PlaceArg;
use crate::output::{Exit, Failure};

/// Everything that waits for a store runs on this.
pub(super) fn runtime() -> Result<Runtime, Failure> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .map_err(|error| Failure::new(Exit::Unavailable, format_args!("no threads: {error}")))
}

impl PlaceArg {
    /// The store's URL: the one given, else the file store under the state directory.
    pub(super) fn url(&self) -> Result<StoreUrl, Failure> {
        let named = self.store.as_deref().map(str::parse).transpose().map_err(Failure::usage)?;
        store_or_default(named).ok_or_else(|| {
            Failure::usage("there is no state directory: set FRAZIL_STATE_DIR or HOME")
        })
    }

    /// Opens the store.
    pub(super) async fn open(&self, copied: Copied) -> Result<Arc<dyn Store>, Failure> {
        Ok(frazil::coord::open(&self.url()?, &self.namespace, copied).await?)
    }

    /// Opens the store and reads the namespace's meta record, which must be there.
    pub(super) async fn open_namespace(
        &self,
    ) -> Result<(Arc<dyn Store>, Versioned<Meta>), Failure> {
        let store = self.open(Copied::Refuse).await?;
        match store.meta().await? {
            Some(meta) => Ok((store, meta)),
            None => Err(Failure::new(
                Exit::No,
                format_args!(
                    "{store} has no namespace {:?}: it is created by its first node, or by \
                     frazil store init",
                    self.namespace.as_str()
                ),
            )),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let exit = match error.kind() {
            ErrorKind::InvalidConfig => Exit::Usage,
            ErrorKind::Corrupt | ErrorKind::NewerFormat | ErrorKind::Unsafe => Exit::Refused,
            _ => Exit::Unavailable,
        };
        Self::new(exit, error)
    }
}
