//! The tests of the crate, in one program.

#[cfg(feature = "testing")]
mod faults;
#[cfg(feature = "testing")]
mod impostor;
mod serving;
mod site;
