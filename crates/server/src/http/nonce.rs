//! `frazil-nonce`: how a client knows that an answer is to its own request, and not one that a
//! cache between them kept. IDs that were received once must never be received again.

use frazil_wire::{ApiError, Reason};
use hyper::header::{HeaderMap, HeaderName, HeaderValue};

/// The header, of requests and of their answers.
pub(super) const NONCE: HeaderName = HeaderName::from_static("frazil-nonce");
/// A UUID has 36; more than this is no nonce, but somebody's data.
const BYTES_MAX: usize = 64;

/// What a request says and its answer repeats, if it says something.
pub(super) fn of(headers: &HeaderMap) -> Result<Option<HeaderValue>, ApiError> {
    let mut all = headers.get_all(NONCE).iter();
    match (all.next(), all.next()) {
        (None, _) => Ok(None),
        (Some(nonce), None) if is_nonce(nonce.as_bytes()) => Ok(Some(nonce.clone())),
        _ => {
            let detail =
                format_args!("{NONCE} is one header of 1 to {BYTES_MAX} visible ASCII bytes");
            Err(ApiError::new(Reason::InvalidArgument, detail))
        }
    }
}

fn is_nonce(bytes: &[u8]) -> bool {
    (1..=BYTES_MAX).contains(&bytes.len()) && bytes.iter().all(u8::is_ascii_graphic)
}
