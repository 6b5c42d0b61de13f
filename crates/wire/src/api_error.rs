//! A failed request: a reason of the catalogue with what there is to say.

use std::fmt;
use std::time::Duration;

use crate::problem::Problem;
use crate::reason::Reason;

/// Why a request failed, for every protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ApiError {
    /// The reason.
    pub reason: Reason,
    /// What happened, in a sentence.
    pub detail: String,
    /// After how long another attempt can succeed, if that is known.
    pub retry_after: Option<Duration>,
}

impl ApiError {
    /// A failure that waiting does not repair.
    pub fn new(reason: Reason, detail: impl fmt::Display) -> Self {
        Self { reason, detail: detail.to_string(), retry_after: None }
    }

    /// The same, with the time after which another attempt can succeed.
    #[must_use]
    pub fn retry_after(self, wait: Duration) -> Self {
        Self { retry_after: Some(wait), ..self }
    }

    /// The same with other words.
    #[must_use]
    pub fn with_detail(self, detail: impl fmt::Display) -> Self {
        Self { detail: detail.to_string(), ..self }
    }

    /// The same in milliseconds, at least one.
    #[must_use]
    pub fn retry_after_ms(&self) -> Option<u64> {
        self.retry_after.map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX).max(1))
    }

    /// The body of an HTTP answer.
    #[must_use]
    pub fn to_problem(&self) -> Problem {
        let reason = self.reason;
        Problem {
            kind: format!("urn:frazil:error:{reason}"),
            title: reason.title().to_owned(),
            status: reason.http_status(),
            detail: self.detail.clone(),
            reason: reason.name().to_owned(),
            help: reason.help().to_owned(),
            retry_after_ms: self.retry_after_ms(),
        }
    }

    /// The error line of a RESP answer, without the minus and the line's end.
    #[must_use]
    pub fn to_resp(&self) -> String {
        let line = match self.retry_after_ms() {
            Some(ms) => format!("{} retry_after_ms={ms} {}", self.reason, self.detail),
            None => format!("{} {}", self.reason, self.detail),
        };
        // A line's end would begin another answer.
        line.replace(['\r', '\n'], " ")
    }
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.reason, self.detail)
    }
}

impl std::error::Error for ApiError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resp_error_is_one_line_whatever_the_detail() {
        let error = ApiError::new(Reason::InvalidArgument, "a\r\n+OK\nb");
        assert_eq!(error.to_resp(), "INVALID_ARGUMENT a  +OK b");
        let error = ApiError::new(Reason::Overloaded, "busy").retry_after(Duration::from_micros(3));
        assert_eq!(error.to_resp(), "OVERLOADED retry_after_ms=1 busy");
    }
}
