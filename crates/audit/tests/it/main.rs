//! The tests of the crate, in one program.

mod exact;
mod memory;
mod verdict;
