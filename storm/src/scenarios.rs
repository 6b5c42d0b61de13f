//! One file for each experiment.

pub(crate) mod amnesia;
pub(crate) mod eviction;
pub(crate) mod failover;
pub(crate) mod kill;
pub(crate) mod leader;
pub(crate) mod lost_keys;
pub(crate) mod outage;
pub(crate) mod partition;
pub(crate) mod pause;
pub(crate) mod snapshot;
pub(crate) mod store_clock;
