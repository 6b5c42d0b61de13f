//! A finding about a store for whoever looks after it, and what to do about it.

use std::fmt;

/// Something that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// What was found, in a sentence.
    pub what: String,
    /// What repairs it: a command or a setting. Empty where `what` says it.
    pub fix: String,
}

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Severity {
    /// It weakens a promise, or will be in the way some day.
    Warning,
    /// Records can vanish or be wrong, or nothing can be leased.
    Danger,
}

impl Finding {
    /// A finding that weakens a promise.
    pub fn warning(what: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, what: what.into(), fix: fix.into() }
    }

    /// A finding that breaks one.
    pub fn danger(what: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { severity: Severity::Danger, what: what.into(), fix: fix.into() }
    }
}

/// All findings as the sentences of [`Guarantees::warnings`](crate::Guarantees::warnings).
pub(crate) fn sentences(findings: &[Finding]) -> Vec<String> {
    findings.iter().map(Finding::to_string).collect()
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        match self.fix.as_str() {
            "" => Ok(()),
            fix => write!(f, "; {fix}"),
        }
    }
}
