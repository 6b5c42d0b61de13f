//! One file for each experiment.

pub(crate) mod amnesia;
pub(crate) mod kill;
pub(crate) mod outage;
pub(crate) mod partition;
pub(crate) mod pause;
