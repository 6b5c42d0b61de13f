//! Metrics by key.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use frazil_wire::Reason;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

use super::Labels;

/// Names that have rows of their own: every row is memory, here and wherever metrics are kept.
const NAMES_MAX: usize = 100;
/// What all further keys are counted under.
const OTHER: &str = "other";
/// What requests without a key are counted under, and keys that nobody knows.
const NONE: &str = "none";

/// The rows of all keys. Clones count the same.
#[derive(Clone, Debug)]
pub(crate) struct KeyMetrics {
    issued: Family<Labels, Counter>,
    refused: Family<Labels, Counter>,
    names: Arc<Mutex<BTreeSet<String>>>,
    nobody: KeyCounts,
}

/// The rows of one key, found without a search.
#[derive(Clone, Debug)]
pub(crate) struct KeyCounts {
    name: String,
    issued: Counter,
    refused: Family<Labels, Counter>,
}

impl KeyMetrics {
    pub(crate) fn new() -> Self {
        let (issued, refused) = (Family::default(), Family::default());
        let nobody = KeyCounts::new(NONE, &issued, &refused);
        Self { issued, refused, names: Arc::default(), nobody }
    }

    pub(super) fn register(&self, registry: &mut Registry) {
        let help = "IDs issued to the holders of a key, by its name";
        registry.register("key_ids_issued", help, self.issued.clone());
        let help = "Requests that were refused to the holders of a key, by its name and the reason";
        registry.register("key_refused", help, self.refused.clone());
    }

    /// The rows of a key. Names keep theirs once they have them.
    pub(crate) fn of(&self, name: &str) -> KeyCounts {
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        let has_row = names.contains(name) || names.len() < NAMES_MAX;
        if has_row && !names.contains(name) {
            names.insert(name.to_owned());
        }
        KeyCounts::new(if has_row { name } else { OTHER }, &self.issued, &self.refused)
    }

    /// The rows of those without a key.
    pub(crate) const fn nobody(&self) -> &KeyCounts {
        &self.nobody
    }
}

impl KeyCounts {
    fn new(
        name: &str,
        issued: &Family<Labels, Counter>,
        refused: &Family<Labels, Counter>,
    ) -> Self {
        let labels = vec![("key", name.to_owned())];
        let issued = Counter::clone(&issued.get_or_create(&labels));
        Self { name: name.to_owned(), issued, refused: refused.clone() }
    }

    pub(crate) fn issued(&self, count: u64) {
        self.issued.inc_by(count);
    }

    /// Counts so many requests that were refused.
    pub(crate) fn refused(&self, reason: Reason, requests: u64) {
        let labels = vec![("key", self.name.clone()), ("reason", reason.name().to_owned())];
        self.refused.get_or_create(&labels).inc_by(requests);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hundred_names_have_rows_and_the_rest_share_one() {
        let metrics = KeyMetrics::new();
        let name = |number: usize| format!("key-{number}");
        (0..NAMES_MAX + 50).for_each(|number| metrics.of(&name(number)).issued(1));
        // Also when they come again, as after a reload.
        (0..NAMES_MAX + 50).for_each(|number| metrics.of(&name(number)).issued(1));
        let count =
            |name: &str| metrics.issued.get_or_create(&vec![("key", name.to_owned())]).get();
        assert_eq!((count(&name(0)), count(&name(NAMES_MAX - 1)), count(OTHER)), (2, 2, 100));
        assert_eq!(count(&name(NAMES_MAX)), 0);
    }
}
