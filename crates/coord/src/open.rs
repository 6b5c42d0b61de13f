//! From a URL to a store.

use std::sync::Arc;

use crate::error::{Error, ErrorKind};
use crate::namespace::Namespace;
use crate::store::Store;
use crate::stores::file::{Copied, FileStore};
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
    match url.scheme {
        Scheme::File => Ok(Arc::new(FileStore::open(url, namespace, copied).await?)),
        Scheme::Static => {
            let files = fixed_worker_files(url)?;
            Ok(Arc::new(FileStore::open(&files, namespace, copied).await?))
        }
        Scheme::Memory => Ok(Arc::new(MemoryStore::new())),
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
            Ok(Arc::new(crate::stores::zookeeper::ZooKeeperStore::connect(url, namespace).await?))
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
fn fixed_worker_files(url: &StoreUrl) -> Result<StoreUrl, Error> {
    let Some(state) = url.option("state") else {
        let why = "say where its horizon is kept: static:N?state=DIRECTORY";
        return Err(Error::new(ErrorKind::InvalidConfig, "open the store", url, why));
    };
    let mut files = StoreUrl::file(format!("{state}/static-{}", url.path));
    if let Some(allowed) = url.option("unsafe_filesystem") {
        files.options.insert("unsafe_filesystem".into(), allowed.to_owned());
    }
    Ok(files)
}
