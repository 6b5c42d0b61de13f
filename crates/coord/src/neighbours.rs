//! Neighbours: other namespaces of the same store that issue the same Ids.

use std::fmt;
use std::path::PathBuf;

use crate::error::{Error, ErrorKind};
use crate::keeper::Setup;
use crate::namespace::Namespace;
use crate::open::{look, place};
use crate::protocol::Leasing;
use crate::store::Store;
use crate::stores::memory::MemoryStore;
use crate::url::{Scheme, StoreUrl};

/// More namespaces than anybody has; a start must not take long.
const LOOKED_AT_MAX: usize = 256;

/// A second namespace with the same layout and some of the same workers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Neighbour {
    /// Its name.
    pub namespace: Namespace,
    /// Its first and its last worker.
    pub workers: (u32, u32),
}

/// The namespaces of a store, beside one's own, whose Ids are the same as those of a layout and a
/// range of workers. Only files and memory are looked through; on servers it is nobody.
///
/// # Errors
/// If the store cannot be looked into.
pub async fn neighbours(
    url: &StoreUrl,
    own: &Namespace,
    layout: &str,
    workers: (u32, u32),
) -> Result<Vec<Neighbour>, Error> {
    let mut found = Vec::new();
    for namespace in others(url, own).await? {
        let Some(meta) = look(url, &namespace).await?.meta().await? else { continue };
        let theirs = (meta.value.first_worker, meta.value.last_worker);
        if meta.value.layout == layout && overlap(theirs, workers) {
            found.push(Neighbour { namespace, workers: theirs });
        }
    }
    Ok(found)
}

/// Warns, once, of namespaces that issue the same Ids as the node that is about to start.
pub async fn warn_of_neighbours(url: &StoreUrl, own: &Namespace, store: &dyn Store, setup: &Setup) {
    let known = store.meta().await.ok().flatten().filter(|meta| !meta.value.is_blank());
    let known = known.map(|meta| (meta.value.first_worker, meta.value.last_worker));
    let workers = known.or(setup.workers).unwrap_or((0, setup.last_worker));
    match neighbours(url, own, &setup.layout, workers).await {
        Ok(found) => {
            for neighbour in found {
                tracing::warn!("{neighbour}. Use only one of the two");
            }
        }
        // The lease will tell what is wrong with the store.
        Err(error) => tracing::debug!(%error, "other namespaces were not looked at"),
    }
}

const fn overlap(one: (u32, u32), other: (u32, u32)) -> bool {
    one.0 <= other.1 && other.0 <= one.1
}

async fn others(url: &StoreUrl, own: &Namespace) -> Result<Vec<Namespace>, Error> {
    let mut names = match url.scheme {
        Scheme::Memory => MemoryStore::namespaces(&url.path),
        Scheme::File | Scheme::Static => {
            let directory = PathBuf::from(place(url)?.directory);
            let failed = |why: &dyn fmt::Display| {
                Error::new(ErrorKind::Unavailable, "list the namespaces", url, why)
            };
            let listed = tokio::task::spawn_blocking(move || in_directory(&directory)).await;
            listed.map_err(|error| failed(&error))?.map_err(|error| failed(&error))?
        }
        _ => Vec::new(),
    };
    names.retain(|name| name != own);
    names.truncate(LOOKED_AT_MAX);
    Ok(names)
}

/// Every directory that could be a namespace's and has a meta record.
fn in_directory(directory: &std::path::Path) -> std::io::Result<Vec<Namespace>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name().to_str().and_then(|name| name.parse().ok());
        if let Some(name) = name.filter(|_| entry.path().join("meta").is_file()) {
            names.push(name);
        }
    }
    Ok(names)
}

impl fmt::Display for Neighbour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (first, last) = self.workers;
        write!(
            f,
            "the namespace {:?} of the same store has the same layout and workers {first} to {last}: \
             both namespaces issue the same Ids",
            self.namespace.as_str()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_overlap_if_they_share_a_worker() {
        for (one, other, expected) in [
            ((0, 9), (10, 19), false),
            ((0, 10), (10, 19), true),
            ((12, 13), (10, 19), true),
            ((20, 29), (10, 19), false),
        ] {
            assert_eq!(overlap(one, other), expected, "{one:?} {other:?}");
            assert_eq!(overlap(other, one), expected, "{other:?} {one:?}");
        }
    }
}
