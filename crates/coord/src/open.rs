//! The opening of a store by its URL.

use std::pin::Pin;
use std::sync::Arc;

use crate::error::{Error, ErrorKind};
use crate::namespace::Namespace;
use crate::store::Store;
use crate::stores::file::{Copied, FileStore, OpenMode, Place, Purpose};
use crate::stores::memory::MemoryStore;
use crate::url::{Scheme, StoreUrl};

/// Connects to the store that a URL names. `copied` says what to do with a directory that was
/// copied from another; other stores have nothing of the kind.
///
/// # Errors
/// If the store cannot be reached, does not let us in or is not safe to use.
pub async fn open(
    url: &StoreUrl,
    namespace: &Namespace,
    copied: Copied,
) -> Result<Arc<dyn Store>, Error> {
    enter(url, namespace, OpenMode::Use(copied)).await
}

/// As [`open`], to read only: no directory or node is created, and one that is not there is taken
/// for a namespace that does not exist.
///
/// # Errors
/// As for [`open`].
pub async fn look(url: &StoreUrl, namespace: &Namespace) -> Result<Arc<dyn Store>, Error> {
    enter(url, namespace, OpenMode::Look).await
}

/// A store to be. Boxed, so that the clients of all stores are compiled here and not again in every crate
/// that opens one.
type Opening<'a> = Pin<Box<dyn Future<Output = Result<Arc<dyn Store>, Error>> + Send + 'a>>;

fn enter<'a>(url: &'a StoreUrl, namespace: &'a Namespace, open_mode: OpenMode) -> Opening<'a> {
    Box::pin(connect(url, namespace, open_mode))
}

async fn connect(
    url: &StoreUrl,
    namespace: &Namespace,
    open_mode: OpenMode,
) -> Result<Arc<dyn Store>, Error> {
    match url.scheme {
        Scheme::File | Scheme::Static => {
            Ok(Arc::new(FileStore::enter(url, place(url)?, namespace, open_mode).await?))
        }
        Scheme::Memory => Ok(Arc::new(MemoryStore::named(&url.path, namespace))),
        #[cfg(feature = "redis")]
        Scheme::Redis | Scheme::RedisSentinel | Scheme::RedisCluster => {
            Ok(Arc::new(crate::stores::redis::RedisStore::connect(url, namespace).await?))
        }
        #[cfg(feature = "etcd")]
        Scheme::Etcd => {
            Ok(Arc::new(crate::stores::etcd::EtcdStore::connect(url, namespace).await?))
        }
        #[cfg(feature = "zookeeper")]
        Scheme::ZooKeeper => {
            use crate::stores::zookeeper::ZooKeeperStore;
            Ok(Arc::new(match open_mode {
                OpenMode::Look => ZooKeeperStore::look(url, namespace).await?,
                OpenMode::Use(_) => ZooKeeperStore::connect(url, namespace).await?,
            }))
        }
        #[cfg(not(all(feature = "redis", feature = "etcd", feature = "zookeeper")))]
        _ => {
            let why = "this program was built without the feature for that store";
            Err(Error::new(ErrorKind::InvalidConfig, "open the store", url, why))
        }
    }
}

/// A fixed worker keeps its horizon in files too: in a directory of its own, so that each number
/// has its own small namespace.
pub(crate) fn place(url: &StoreUrl) -> Result<Place, Error> {
    if url.scheme == Scheme::File {
        return Ok(Place { directory: url.path.clone(), purpose: Purpose::Shared });
    }
    let Some(state) = url.option("state") else {
        let why = "say where its horizon is kept: static:N?state=DIRECTORY";
        return Err(Error::new(ErrorKind::InvalidConfig, "open the store", url, why));
    };
    let directory = format!("{state}/static-{}", url.path);
    Ok(Place { directory, purpose: Purpose::Fixed })
}
