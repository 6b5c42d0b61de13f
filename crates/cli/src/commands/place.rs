//! Opening a store and its namespace, and what the failures mean to the shell.

use std::env;
use std::pin::Pin;
use std::sync::Arc;

use frazil::coord::Copied;
use frazil::coord::internal::pool_meta;
use frazil::coord::{Meta, Scheme, Store, StoreUrl, Versioned};
use frazil::store_or_default;
use tokio::runtime::Runtime;

use crate::args::{PlaceArg, STORE_VARIABLE};
use crate::output::{Exit, Failure, say};

/// A command that waits for a store. Boxed: what runs it is compiled once for all commands.
pub(super) type Running<'a> = Pin<Box<dyn Future<Output = Result<(), Failure>> + 'a>>;

/// Everything that waits for a store runs on this.
pub(super) fn runtime() -> Result<Runtime, Failure> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .map_err(|error| Failure::new(Exit::Unavailable, format_args!("no threads: {error}")))
}

impl PlaceArg {
    /// The store that was named. An empty variable names none; an empty flag is a mistake.
    pub(super) fn named(&self) -> Option<&str> {
        let unset = || env::var_os(STORE_VARIABLE).is_some_and(|value| value.is_empty());
        self.store.as_deref().filter(|text| !(text.is_empty() && unset()))
    }

    /// The store's URL: the one given, else the file store under the state directory.
    pub(super) fn url(&self) -> Result<StoreUrl, Failure> {
        let named = self.named().map(str::parse).transpose().map_err(Failure::usage)?;
        store_or_default(named).ok_or_else(|| {
            Failure::usage("there is no state directory: set FRAZIL_STATE_DIR or HOME")
        })
    }

    /// Opens the store to write.
    pub(super) async fn open(&self, copied: Copied) -> Result<Arc<dyn Store>, Failure> {
        let url = self.url()?;
        warn_of_memory(&url);
        Ok(frazil::coord::open(&url, &self.namespace, copied).await?)
    }

    /// Opens the store to read: nothing is created.
    pub(super) async fn look(&self) -> Result<Arc<dyn Store>, Failure> {
        let url = self.url()?;
        warn_of_memory(&url);
        Ok(frazil::coord::look(&url, &self.namespace).await?)
    }

    /// Opens the store to read, with the namespace's meta record, which must be there.
    pub(super) async fn look_at_namespace(
        &self,
    ) -> Result<(Arc<dyn Store>, Versioned<Meta>), Failure> {
        let store = self.look().await?;
        match pool_meta(store.as_ref()).await? {
            Some(meta) => Ok((store, meta)),
            None => Err(self.no_namespace(&store)),
        }
    }

    /// Opens the store to write, with the namespace's meta record, which must be there.
    pub(super) async fn open_namespace(
        &self,
    ) -> Result<(Arc<dyn Store>, Versioned<Meta>), Failure> {
        // To open may create directories or nodes, so it is looked for first.
        self.look_at_namespace().await?;
        let store = self.open(Copied::Refuse).await?;
        match pool_meta(store.as_ref()).await? {
            Some(meta) => Ok((store, meta)),
            None => Err(self.no_namespace(&store)),
        }
    }

    /// That the namespace is not there, and what creates it.
    pub(super) fn no_namespace(&self, store: &Arc<dyn Store>) -> Failure {
        Failure::new(
            Exit::No,
            format_args!(
                "{store} has no namespace {:?}: it is created by its first frazil next, or by \
                 frazil store init",
                self.namespace.as_str()
            ),
        )
    }
}

/// Says what `memory:` is worth in a command of its own process.
pub(super) fn warn_of_memory(url: &StoreUrl) {
    if url.scheme == Scheme::Memory {
        say("warning: memory: is of this process alone and ends with it: no other process sees \
             its workers, and IDs of two processes can be the same");
    }
}
