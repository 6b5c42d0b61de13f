//! A failed request as gRPC tells it.

use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};

use crate::api_error::ApiError;

/// Whose reasons they are.
const DOMAIN: &str = "frazil";

impl From<ApiError> for Status {
    fn from(error: ApiError) -> Self {
        let metadata = [("help".to_owned(), error.reason.help().to_owned())];
        let mut details = ErrorDetails::with_error_info(error.reason.name(), DOMAIN, metadata);
        if let Some(wait) = error.retry_after {
            details.set_retry_info(Some(wait));
        }
        Self::with_error_details(Code::from(error.reason.grpc_code()), error.detail, details)
    }
}

impl ApiError {
    /// What a status tells of a failed request, if it is one of ours.
    #[must_use]
    pub fn from_status(status: &Status) -> Option<Self> {
        let details = status.get_error_details();
        let info = details.error_info().filter(|info| info.domain == DOMAIN)?;
        let reason = info.reason.parse().ok()?;
        let retry_after = details.retry_info().and_then(|retry| retry.retry_delay);
        Some(Self { retry_after, ..Self::new(reason, status.message()) })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::reason::Reason;

    #[test]
    fn a_status_carries_reason_and_retry() {
        let error = ApiError::new(Reason::Overloaded, "busy").retry_after(Duration::from_millis(7));
        let status = Status::from(error.clone());
        assert_eq!(ApiError::from_status(&status), Some(error));
        assert_eq!(ApiError::from_status(&Status::unavailable("busy")), None);
        assert_eq!((status.code(), status.message()), (Code::Unavailable, "busy"));
        let details = status.get_error_details();
        let info = details.error_info().unwrap();
        assert_eq!((info.reason.as_str(), info.domain.as_str()), ("OVERLOADED", "frazil"));
        let retry = details.retry_info().unwrap();
        assert_eq!(retry.retry_delay, Some(Duration::from_millis(7)));
    }
}
