//! Bodies of requests.

use frazil_wire::{ApiError, Reason};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::Request;
use hyper::body::Incoming;
use hyper::header::CONTENT_TYPE;
use serde::de::DeserializeOwned;

/// Reads a JSON object of at most so many bytes.
pub(super) async fn json<T: DeserializeOwned>(
    request: Request<Incoming>,
    most: usize,
) -> Result<T, ApiError> {
    let kind = request.headers().get(CONTENT_TYPE).map(|kind| kind.to_str().unwrap_or_default());
    let media = kind.map(|kind| kind.split(';').next().unwrap_or_default().trim());
    if !media.is_some_and(|media| media.eq_ignore_ascii_case("application/json")) {
        let detail = "the body must be application/json, and the Content-Type header must say so";
        return Err(ApiError::new(Reason::UnsupportedMediaType, detail));
    }
    let bytes = match Limited::new(request.into_body(), most).collect().await {
        Ok(collected) => collected.to_bytes(),
        Err(error) if error.is::<LengthLimitError>() => {
            let detail = format_args!("the body is longer than {most} bytes");
            return Err(ApiError::new(Reason::TooLarge, detail));
        }
        Err(error) => {
            let detail = format_args!("the body cannot be read: {error}");
            return Err(ApiError::new(Reason::InvalidArgument, detail));
        }
    };
    serde_json::from_slice(&bytes).map_err(|error| {
        ApiError::new(Reason::InvalidArgument, format_args!("the body makes no sense: {error}"))
    })
}
