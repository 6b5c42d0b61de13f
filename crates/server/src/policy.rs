//! The rules about requests, the same for every protocol: who may ask, for how much, and whose turn it is.

pub(crate) mod access;
pub(crate) mod admission;
pub(crate) mod attempts;
pub(crate) mod audit;
pub(crate) mod decode_cost;
pub(crate) mod in_flight;
pub mod keys;
pub(crate) mod queue;
