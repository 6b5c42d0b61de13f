//! One file for each experiment.

pub(crate) mod amnesia;
pub(crate) mod clock_back;
pub(crate) mod clock_crash;
pub(crate) mod clock_forward;
pub(crate) mod etcd_leader;
pub(crate) mod eviction;
pub(crate) mod exhaustion;
pub(crate) mod failover;
pub(crate) mod herd;
pub(crate) mod hostile_count;
pub(crate) mod jobs;
pub(crate) mod kill;
pub(crate) mod leader;
pub(crate) mod lost_keys;
pub(crate) mod lost_replies;
pub(crate) mod outage;
pub(crate) mod partition;
pub(crate) mod pause;
pub(crate) mod pool;
pub(crate) mod redis_outage;
pub(crate) mod rolling;
pub(crate) mod snapshot;
pub(crate) mod store_clock;
pub(crate) mod strobe;
pub(crate) mod time_edge;
pub(crate) mod volume;
