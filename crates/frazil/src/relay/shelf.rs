//! A place for a shared value that is read without waiting: the one door to the atomics here,
//! which loom replaces when the interleavings are searched.

#[cfg(not(loom))]
pub(super) use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

#[cfg(not(loom))]
#[derive(Debug)]
pub(super) struct Shelf<T>(arc_swap::ArcSwapOption<T>);

#[cfg(not(loom))]
impl<T> Shelf<T> {
    pub(super) fn empty() -> Self {
        Self(arc_swap::ArcSwapOption::empty())
    }

    pub(super) fn with<R>(&self, look: impl FnOnce(&T) -> R) -> Option<R> {
        self.0.load().as_deref().map(look)
    }

    pub(super) fn put(&self, value: Option<T>) {
        self.0.store(value.map(std::sync::Arc::new));
    }
}

/// Lets others run who may be about to put the next value in place.
#[cfg(not(loom))]
pub(super) fn give_way() {
    std::thread::yield_now();
}

#[cfg(loom)]
pub(super) use loom::sync::atomic::{AtomicBool, AtomicU64, Ordering};

#[cfg(loom)]
#[derive(Debug)]
pub(super) struct Shelf<T>(loom::sync::Mutex<Option<loom::sync::Arc<T>>>);

#[cfg(loom)]
impl<T> Shelf<T> {
    pub(super) fn empty() -> Self {
        Self(loom::sync::Mutex::new(None))
    }

    pub(super) fn with<R>(&self, look: impl FnOnce(&T) -> R) -> Option<R> {
        let value = self.0.lock().expect("nobody panics with it").clone();
        value.as_deref().map(look)
    }

    pub(super) fn put(&self, value: Option<T>) {
        *self.0.lock().expect("nobody panics with it") = value.map(loom::sync::Arc::new);
    }
}

#[cfg(loom)]
pub(super) fn give_way() {
    loom::thread::yield_now();
}
