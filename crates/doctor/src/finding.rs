//! The findings of checks.

use serde::Serialize;

/// How a check ended. The words are a contract of `frazil doctor --json`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// As it should be.
    Ok,
    /// It works, and something should be repaired.
    Warn,
    /// It does not work.
    Fail,
    /// It was not looked at.
    Skipped,
}

/// One thing that a check found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Finding {
    /// The name of the check, which never changes.
    pub check: &'static str,
    /// How it ended.
    pub status: Status,
    /// What was found, for people.
    pub detail: String,
    /// What repairs it, where something is to be repaired.
    pub fix: Option<String>,
}

impl Finding {
    /// All is as it should be.
    pub fn ok(check: &'static str, detail: impl Into<String>) -> Self {
        Self { check, status: Status::Ok, detail: detail.into(), fix: None }
    }

    /// Something should be repaired.
    pub fn warn(check: &'static str, detail: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { check, status: Status::Warn, detail: detail.into(), fix: named(fix.into()) }
    }

    /// Something must be repaired.
    pub fn fail(check: &'static str, detail: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { check, status: Status::Fail, detail: detail.into(), fix: named(fix.into()) }
    }

    /// It was not looked at, and why.
    pub fn skipped(check: &'static str, why: impl Into<String>) -> Self {
        Self { check, status: Status::Skipped, detail: why.into(), fix: None }
    }
}

/// A fix, unless it is empty: then the detail says it.
fn named(fix: String) -> Option<String> {
    (!fix.is_empty()).then_some(fix)
}
