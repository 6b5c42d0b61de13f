//! The one door to atomics: `core`'s, loom's when the interleavings are searched, or shuttle's
//! when they are drawn by chance.

#[cfg(not(any(loom, shuttle)))]
pub(crate) use core::sync::atomic::{AtomicI64, AtomicU64, Ordering};
#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicI64, AtomicU64, Ordering};
#[cfg(shuttle)]
pub(crate) use shuttle::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// Keeps a hot word alone on its cache lines, so that writing it does not slow readers of its
/// neighbours down. Two lines, because the hardware fetches lines in pairs.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Padded<T>(pub(crate) T);
