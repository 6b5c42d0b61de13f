//! The parts that all demonstrations of jobs have in common.

use std::time::Duration;

use frazil::coord::{Scheme, StoreUrl};
use frazil::election::processor::Balance;

use crate::output::Failure;

/// Jobs of a demonstration move sooner than others.
pub(super) const BALANCE: Balance = Balance {
    window: Duration::from_millis(500),
    pause: Duration::from_millis(50),
    min_hold: Duration::from_millis(500),
};

pub(super) fn job_name(index: usize) -> String {
    format!("job-{:02}", index + 1)
}

/// Refuses a store that each node would have for itself.
pub(super) fn shared(url: StoreUrl) -> Result<StoreUrl, Failure> {
    if matches!(url.scheme, Scheme::Memory | Scheme::Static) {
        let why = format!("{url} is not shared by several nodes: use another store");
        return Err(Failure::usage(why));
    }
    Ok(url)
}
