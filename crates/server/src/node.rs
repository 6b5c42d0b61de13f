//! The node that a server runs: how it is opened, watched, described and scaled.

pub(crate) mod condition;
pub(crate) mod info;
pub(crate) mod monitor;
pub(crate) mod open;
pub(crate) mod scaling;
