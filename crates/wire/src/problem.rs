//! The body of a failed HTTP request.

use serde::{Deserialize, Serialize};

/// A problem as RFC 9457 describes it (`application/problem+json`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// A name for this kind of problem.
    #[serde(rename = "type")]
    pub kind: String,
    /// The problem in a few words, the same for all of its kind.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// What happened this time.
    pub detail: String,
    /// The reason's name.
    pub reason: String,
    /// What to do about it.
    pub help: String,
    /// After how long another attempt can succeed, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
}
