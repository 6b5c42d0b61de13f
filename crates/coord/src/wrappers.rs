//! Stores around a store: with names of its own, counted, or hurt on purpose.

mod faulty;
mod metered;
mod prefixed;

pub use self::faulty::{Chances, Faults, Faulty};
pub use self::metered::{Metered, Operations, Outcome};
pub use self::prefixed::Prefixed;
