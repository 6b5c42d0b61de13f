//! A parent and its child, each of which looks at the same mark.
#![expect(unsafe_code, reason = "there is no safe way to fork")]

use frazil_fork::Birthmark;

fn main() {
    let mark = Birthmark::new();
    // SAFETY: there is one thread, so the child finds no lock that nobody lets go of.
    let child = unsafe { libc::fork() };
    let who = if child == 0 { "child" } else { "parent" };
    println!("{who}: made here: {}", mark.is_here());
    if child > 0 {
        // SAFETY: the child is ours, and no status is asked for.
        unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
    }
}
