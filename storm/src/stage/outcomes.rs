//! What was done in a run, and how it ended.

use std::time::Duration;

use serde::Serialize;

use crate::availability::{Availability, IdsInFault};
use crate::checker::Counts;
use crate::verdict::Verdict;

/// How a run ended.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Outcomes {
    pub(crate) counts: Counts,
    pub(crate) refused: std::collections::BTreeMap<String, u64>,
    pub(crate) lost: u64,
    pub(crate) ids_in_faults: Vec<IdsInFault>,
    pub(crate) availability: Availability,
    pub(crate) faults: Vec<Fault>,
    pub(crate) seconds: f64,
    #[serde(flatten)]
    pub(crate) verdict: Verdict,
}

/// A fault that was made.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Fault {
    pub(crate) what: String,
    pub(crate) node: Option<usize>,
    pub(crate) begin: Duration,
    pub(crate) end: Duration,
}
