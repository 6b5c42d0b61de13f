//! Runs something in a real child, and collects what it found there.
#![expect(unsafe_code, reason = "there is no safe fork")]
#![allow(dead_code, reason = "each test file uses its part")]

use std::collections::BTreeSet;
use std::io::{Read, Write, pipe};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Forks run one at a time: a child has a copy of every pipe that is open.
static TURN: Mutex<()> = Mutex::new(());
/// A child that hangs ends after this, and its numbers are missing.
const SECONDS_MAX: u32 = 60;

/// Runs something in a child, and gives back the numbers that it found there.
pub(crate) fn in_child(work: impl FnOnce() -> Vec<u64>) -> Vec<u64> {
    beside(work, || ()).0
}

/// Runs something in a child and something in the parent at the same time.
pub(crate) fn beside<T>(
    child: impl FnOnce() -> Vec<u64>,
    parent: impl FnOnce() -> T,
) -> (Vec<u64>, T) {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    both(child, parent)
}

/// As [`in_child`] for a child, which has its parent's turn and must not wait for it.
pub(crate) fn forked(work: impl FnOnce() -> Vec<u64>) -> Vec<u64> {
    both(work, || ()).0
}

fn both<T>(work: impl FnOnce() -> Vec<u64>, of_parent: impl FnOnce() -> T) -> (Vec<u64>, T) {
    let (mut reader, mut writer) = pipe().unwrap();
    // SAFETY: the child runs this closure, writes to its pipe, and ends without coming back.
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "no fork");
    if child == 0 {
        // SAFETY: asks the kernel to end this process later.
        unsafe { libc::alarm(SECONDS_MAX) };
        drop(reader);
        // A panic must not unwind into what the parent was doing.
        let found = catch_unwind(AssertUnwindSafe(work)).unwrap_or_default();
        for number in found {
            let _ = writer.write_all(&number.to_be_bytes());
        }
        drop(writer);
        // SAFETY: ends the process without running what the parent registered.
        unsafe { libc::_exit(0) };
    }
    drop(writer);
    let found = of_parent();
    let mut bytes = Vec::new();
    reader.read_to_end(&mut bytes).unwrap();
    // SAFETY: waits for the child of this call alone; what it says is of no interest.
    unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
    let (words, rest) = bytes.as_chunks::<8>();
    assert!(rest.is_empty());
    (words.iter().map(|word| u64::from_be_bytes(*word)).collect(), found)
}

/// Leaves a child behind that does something, and dies at once without running any destructor.
pub(crate) fn orphan(work: impl FnOnce()) -> ! {
    // SAFETY: the child runs this closure and ends without coming back; so does this process.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: asks the kernel to end this process later.
        unsafe { libc::alarm(SECONDS_MAX) };
        let _ = catch_unwind(AssertUnwindSafe(work));
    }
    // SAFETY: ends the process without running what its parent registered.
    unsafe { libc::_exit(i32::from(child < 0)) }
}

pub(crate) fn repeated(numbers: &[u64]) -> usize {
    let distinct: BTreeSet<_> = numbers.iter().collect();
    numbers.len() - distinct.len()
}

/// One test at a time: a child has the locks that other threads of its parent held when it was made, and
/// waits for those of another test for ever.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}
