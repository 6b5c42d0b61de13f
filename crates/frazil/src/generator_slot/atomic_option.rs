//! An optional shared value that is read without waiting: the one door to the atomics here,
//! which loom replaces when the interleavings are searched, and shuttle when they are drawn by chance.

#[cfg(not(any(loom, shuttle)))]
pub(super) use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

#[cfg(not(any(loom, shuttle)))]
#[derive(Debug)]
pub(super) struct AtomicOption<T>(arc_swap::ArcSwapOption<T>);

#[cfg(not(any(loom, shuttle)))]
impl<T> AtomicOption<T> {
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
#[cfg(not(any(loom, shuttle)))]
pub(super) fn give_way() {
    std::thread::yield_now();
}

#[cfg(loom)]
use loom as checked;
#[cfg(shuttle)]
use shuttle as checked;

#[cfg(any(loom, shuttle))]
pub(super) use self::checked::sync::atomic::{AtomicBool, AtomicU64, Ordering};

#[cfg(any(loom, shuttle))]
#[derive(Debug)]
pub(super) struct AtomicOption<T>(checked::sync::Mutex<Option<checked::sync::Arc<T>>>);

#[cfg(any(loom, shuttle))]
impl<T> AtomicOption<T> {
    pub(super) fn empty() -> Self {
        Self(checked::sync::Mutex::new(None))
    }

    pub(super) fn with<R>(&self, look: impl FnOnce(&T) -> R) -> Option<R> {
        let value = self.0.lock().expect("nobody panics with it").clone();
        value.as_deref().map(look)
    }

    pub(super) fn put(&self, value: Option<T>) {
        *self.0.lock().expect("nobody panics with it") = value.map(checked::sync::Arc::new);
    }
}

#[cfg(any(loom, shuttle))]
pub(super) fn give_way() {
    checked::thread::yield_now();
}
