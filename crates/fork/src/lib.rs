//! Knows whether this is still the process that something was made in.
//!
//! A process that forks has a copy of everything in its memory, IDs that were fetched ahead
//! included, and a copy that is handed out is a duplicate. [`Birthmark::is_here`] says so for
//! about a nanosecond, where asking for the process's number takes a system call.
//!
//! This is the one crate with unsafe code: no safe function of any crate marks memory as to be
//! wiped in children.

#[cfg(target_os = "linux")]
mod page;

#[cfg(target_os = "linux")]
use self::page::WipedPage;

/// Made in one process, and false in every copy of it.
///
/// On Linux it is a page that the kernel wipes in children however they are made: `fork`, or
/// `clone` without shared memory. Where that cannot be had, the process's number is compared.
#[derive(Debug)]
pub struct Birthmark {
    #[cfg(target_os = "linux")]
    page: Option<WipedPage>,
    pid: u32,
}

impl Birthmark {
    /// Of this process.
    #[must_use]
    pub fn new() -> Self {
        Self {
            #[cfg(target_os = "linux")]
            page: WipedPage::new(),
            pid: std::process::id(),
        }
    }

    /// The same by the process's number alone, as where there is nothing better. A number may be
    /// given to a descendant once the process that had it is gone.
    #[must_use]
    pub fn by_number() -> Self {
        Self {
            #[cfg(target_os = "linux")]
            page: None,
            pid: std::process::id(),
        }
    }

    /// Whether this is the process that it was made in.
    ///
    /// Ask after taking what must not be given out twice, not before: then a fork in between is
    /// noticed, too.
    #[must_use]
    #[inline]
    pub fn is_here(&self) -> bool {
        #[cfg(target_os = "linux")]
        if let Some(page) = &self.page {
            return page.is_intact();
        }
        self.pid == std::process::id()
    }
}

impl Default for Birthmark {
    fn default() -> Self {
        Self::new()
    }
}

/// Runs what the README shows.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_of_the_process_that_made_it() {
        assert!(Birthmark::new().is_here());
        assert!(Birthmark::by_number().is_here());
        #[cfg(target_os = "linux")]
        assert!(Birthmark::new().page.is_some(), "this kernel wipes pages");
    }
}
