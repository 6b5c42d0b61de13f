//! Bodies of HTTP requests.

use std::error::Error;
use std::fmt::Display;

use bytes::BytesMut;
use frazil_wire::{ApiError, Reason};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::Request;
use hyper::body::{Body, Incoming};
use hyper::header::CONTENT_TYPE;
use serde::de::DeserializeOwned;

use crate::config::Limits;

/// Checks that there is no body: one that says nothing is none.
pub(super) async fn none(mut body: Incoming, limits: &Limits) -> Result<(), ApiError> {
    while !body.is_end_stream() {
        let says_something = match in_time(limits, body.frame()).await? {
            None => return Ok(()),
            Some(Ok(frame)) => frame.data_ref().is_some_and(|data| !data.is_empty()),
            Some(Err(_)) => true,
        };
        if says_something {
            let detail = "this takes no body: write count and scope into the path's query";
            return Err(ApiError::new(Reason::InvalidArgument, detail));
        }
    }
    Ok(())
}

async fn in_time<T>(limits: &Limits, reading: impl Future<Output = T>) -> Result<T, ApiError> {
    let limit = limits.body_timeout;
    tokio::time::timeout(limit, reading).await.map_err(|_| {
        let detail = format_args!("the body did not arrive within {limit:?}");
        ApiError::new(Reason::InvalidArgument, detail)
    })
}

/// Reads a JSON object.
pub(super) async fn json<T: DeserializeOwned>(
    request: Request<Incoming>,
    limits: &Limits,
) -> Result<T, ApiError> {
    let mut bytes = BytesMut::new();
    let read = |piece: &[u8]| {
        bytes.extend_from_slice(piece);
        Ok(())
    };
    json_pieces(request, limits, limits.max_body_bytes, read).await?;
    serde_json::from_slice(&bytes).map_err(|error| nonsense(&error))
}

/// Reads what says of itself that it is JSON, at most so many bytes. Others of the thread have their turn after
/// each piece. What is refused is still read to its end: a client that writes all of it before it reads hears why.
pub(super) async fn json_pieces(
    request: Request<Incoming>,
    limits: &Limits,
    most: usize,
    mut read: impl FnMut(&[u8]) -> Result<(), ApiError>,
) -> Result<(), ApiError> {
    let kind = request.headers().get(CONTENT_TYPE).map(|kind| kind.to_str().unwrap_or_default());
    let media = kind.map(|kind| kind.split(';').next().unwrap_or_default().trim());
    if !media.is_some_and(|media| media.eq_ignore_ascii_case("application/json")) {
        let detail = "the body must be application/json, and the Content-Type header must say so";
        return Err(ApiError::new(Reason::UnsupportedMediaType, detail));
    }
    if request.body().size_hint().lower() > most as u64 {
        return Err(too_large(most));
    }
    let mut body = Limited::new(request.into_body(), most);
    let mut outcome = Ok(());
    let reading = async {
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| unreadable(&*error, most))?;
            if let Some(data) = frame.data_ref() {
                outcome = std::mem::replace(&mut outcome, Ok(())).and_then(|()| read(data));
                tokio::task::yield_now().await;
            }
        }
        Ok(())
    };
    in_time(limits, reading).await??;
    outcome
}

fn unreadable(error: &(dyn Error + Send + Sync + 'static), most: usize) -> ApiError {
    if error.is::<LengthLimitError>() {
        return too_large(most);
    }
    let detail = format_args!("the body cannot be read: {error}");
    ApiError::new(Reason::InvalidArgument, detail)
}

/// JSON that is none, or says something else.
pub(super) fn nonsense(error: &dyn Display) -> ApiError {
    ApiError::new(Reason::InvalidArgument, format_args!("the body makes no sense: {error}"))
}

fn too_large(most: usize) -> ApiError {
    ApiError::new(Reason::TooLarge, format_args!("the body is longer than {most} bytes"))
}
