//! The tests of the crate, in one program.

mod faults;
mod impostor;
mod serving;
mod site;
