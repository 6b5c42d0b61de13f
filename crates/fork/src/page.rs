//! A page that children find empty.
#![expect(unsafe_code, reason = "mapping memory has no safe interface")]

use std::ffi::c_void;
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

/// What is written into it; the kernel leaves zero.
const INTACT: u32 = 0x6672_617a;

/// A page of memory that the kernel wipes in every child.
#[derive(Debug)]
pub(crate) struct WipedPage {
    start: NonNull<AtomicU32>,
    length: usize,
}

// SAFETY: all that is ever done to the page after it was made is to read an atomic.
unsafe impl Send for WipedPage {}
// SAFETY: as above.
unsafe impl Sync for WipedPage {}

impl WipedPage {
    /// `None` if the kernel cannot: before Linux 4.14, or in some sandboxes.
    pub(crate) fn new() -> Option<Self> {
        let length = rustix::param::page_size();
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping where the kernel likes, which overlaps nothing.
        let start = unsafe { mmap_anonymous(null_mut(), length, protection, MapFlags::PRIVATE) };
        // From here on it is unmapped when dropped.
        let page = Self { start: NonNull::new(start.ok()?)?.cast(), length };
        // SAFETY: the whole mapping, which is nobody else's; wiping concerns children alone.
        unsafe { madvise(page.address(), length, Advice::LinuxWipeOnFork) }.ok()?;
        page.word().store(INTACT, Ordering::Relaxed);
        Some(page)
    }

    #[inline]
    pub(crate) fn is_intact(&self) -> bool {
        // Relaxed: a process is one or the other from its beginning; no other memory depends on it.
        self.word().load(Ordering::Relaxed) == INTACT
    }

    #[inline]
    fn word(&self) -> &AtomicU32 {
        // SAFETY: mapped, aligned to a page, and zeroed or written as an atomic, for as long as
        // `self` lives.
        unsafe { self.start.as_ref() }
    }

    const fn address(&self) -> *mut c_void {
        self.start.as_ptr().cast()
    }
}

impl Drop for WipedPage {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's own, and nobody borrows from it any more. Of a
        // failure there would be nothing to be done.
        let _ = unsafe { munmap(self.address(), self.length) };
    }
}
