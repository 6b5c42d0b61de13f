//! One file for each experiment.

pub(crate) mod clock_back;
pub(crate) mod clock_crash;
pub(crate) mod clock_forward;
pub(crate) mod exhaustion;
pub(crate) mod exhausted;
pub(crate) mod hostile_count;
pub(crate) mod kill;
pub(crate) mod leader;
pub(crate) mod partition;
pub(crate) mod pause;
pub(crate) mod strobe;
pub(crate) mod volume;
