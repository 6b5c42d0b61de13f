//! Stores around a store: with names of its own, or counted.

mod metered;
mod prefixed;

pub use self::metered::{Metered, Operations, Outcome};
pub use self::prefixed::Prefixed;
