//! The tests of the crate, in one program. Apart is the model, which searches for minutes.

#[cfg(feature = "scopes")]
mod elections;
mod errors;
mod frozen;
mod node;
mod rotation;
mod strict;
#[cfg(feature = "testing")]
mod testing;
