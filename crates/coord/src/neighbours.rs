//! Neighbours: other namespaces of the same store that issue the same IDs.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::error::Error;
use crate::keeper::Setup;
use crate::namespace::Namespace;
use crate::protocol::Leasing;
use crate::store::Store;

/// More namespaces than anybody has.
const LOOKED_AT_MAX: usize = 256;
/// Servers are looked at this long after the start: who issues a few IDs and ends costs them nothing.
const LOOK_AFTER: Duration = Duration::from_secs(2);
/// Whoever has not seen all by then has seen enough.
const LOOK_MAX: Duration = Duration::from_secs(30);

/// A second namespace with the same layout and some of the same workers.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Neighbour {
    /// Its name.
    pub namespace: Namespace,
    /// Its first and its last worker.
    pub workers: (u32, u32),
}

/// The namespaces of a store, beside its own, whose IDs are the same as those of a layout and a range
/// of workers, as far as they can be seen.
///
/// # Errors
/// If the store cannot be looked through.
pub async fn neighbours(
    store: &dyn Store,
    layout: &str,
    workers: (u32, u32),
) -> Result<Vec<Neighbour>, Error> {
    let mut found = Vec::new();
    for (namespace, meta) in store.neighbours(LOOKED_AT_MAX).await? {
        let theirs = (meta.first_worker, meta.last_worker);
        if meta.layout == layout && overlap(theirs, workers) {
            found.push(Neighbour { namespace, workers: theirs });
        }
    }
    Ok(found)
}

/// Warns, once, of namespaces that issue the same IDs as the node that is about to start. Files and
/// memory are looked at before it does, servers in the background, by a task that ends soon by itself.
/// Must be called inside a Tokio runtime.
pub async fn warn_of_neighbours(store: &Arc<dyn Store>, setup: &Setup, is_remote: bool) {
    if !is_remote {
        warn(store.as_ref(), setup).await;
        return;
    }
    let (store, setup) = (Arc::downgrade(store), setup.clone());
    tokio::spawn(async move {
        tokio::time::sleep(LOOK_AFTER).await;
        if let Some(store) = store.upgrade() {
            // What was not seen in time is not told.
            let _ = tokio::time::timeout(LOOK_MAX, warn(store.as_ref(), &setup)).await;
        }
    });
}

async fn warn(store: &dyn Store, setup: &Setup) {
    let known = store.meta().await.ok().flatten().filter(|meta| !meta.value.is_blank());
    let known = known.map(|meta| (meta.value.first_worker, meta.value.last_worker));
    let workers = known.or(setup.workers).unwrap_or((0, setup.last_worker));
    match neighbours(store, &setup.layout, workers).await {
        Ok(found) => {
            for neighbour in found {
                tracing::warn!("{neighbour}. Use only one of the two");
            }
        }
        // The lease will tell what is wrong with the store.
        Err(error) => {
            tracing::debug!(error = %format_args!("{error:#}"), "other namespaces were not looked at")
        }
    }
}

const fn overlap(one: (u32, u32), other: (u32, u32)) -> bool {
    one.0 <= other.1 && other.0 <= one.1
}

impl fmt::Display for Neighbour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (first, last) = self.workers;
        write!(
            f,
            "the namespace {:?} of the same store has the same layout and workers {first} to {last}: \
             both namespaces issue the same IDs",
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
