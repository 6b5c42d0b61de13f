//! One file for each experiment.

pub(crate) mod exhausted;
pub(crate) mod herd;
pub(crate) mod hostile_count;
pub(crate) mod jobs;
pub(crate) mod kill;
pub(crate) mod leader;
pub(crate) mod partition;
pub(crate) mod pause;
