//! The stores of this process by name: whoever opens the same URL meets in the same store.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex};

use super::State;
use crate::namespace::Namespace;
use crate::sync::lock;

type Stores = HashMap<(String, Namespace), Arc<Mutex<State>>>;

/// Kept until the process ends, open or not: a store that was forgotten with its last user would
/// give the next one the same worker with no floor, and the IDs of the last tick again.
static STORES: LazyLock<Mutex<Stores>> = LazyLock::new(Mutex::default);

/// The store of a name and a namespace.
pub(super) fn shared(name: &str, namespace: &Namespace) -> Arc<Mutex<State>> {
    lock(&STORES).entry((name.to_owned(), namespace.clone())).or_default().clone()
}

/// The namespaces of a name.
pub(super) fn namespaces(name: &str) -> Vec<Namespace> {
    let named = |(stored, _): &&(String, Namespace)| stored == name;
    lock(&STORES).keys().filter(named).map(|(_, namespace)| namespace.clone()).collect()
}
