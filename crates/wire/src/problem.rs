//! The body of a failed HTTP request.

use serde::{Deserialize, Serialize};

/// A problem as RFC 9457 describes it (`application/problem+json`). What has no reason is not one of Frazil's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Problem {
    /// A name for this kind of problem.
    #[serde(rename = "type", default)]
    pub kind: String,
    /// The problem in a few words, the same for all of its kind.
    #[serde(default)]
    pub title: String,
    /// The HTTP status.
    #[serde(default)]
    pub status: u16,
    /// What happened this time.
    #[serde(default)]
    pub detail: String,
    /// The reason's name.
    pub reason: String,
    /// What to do about it.
    #[serde(default)]
    pub help: String,
    /// After how long another attempt can succeed, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
}
