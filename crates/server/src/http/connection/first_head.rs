//! The head of the first request of a connection, waited for before the library is given the
//! connection: that one holds almost twenty kilobytes from the first byte on.

use std::io;

use httparse::{EMPTY_HEADER, Request};
use tokio_util::sync::CancellationToken;

use super::HEADERS_USUAL;
use super::activity::{Activity, PhaseTimeouts};
use super::unread::HeadLimits;
use crate::http::GRACE;
use crate::net::peek::peek_until;
use crate::net::stream::Stream;

/// Whether the client sends a head, or anything else that must be answered, in time. Nothing of it
/// is read.
pub(super) async fn has_first_head(
    stream: &Stream,
    heads: HeadLimits,
    activity: &Activity,
    patience: PhaseTimeouts,
    closing: &CancellationToken,
) -> bool {
    let head = first_head(stream, heads, activity);
    tokio::pin!(head);
    tokio::select! {
        biased;
        arrived = &mut head => return arrived.is_ok(),
        () = activity.lost(patience) => return false,
        () = closing.cancelled() => {}
    }
    if activity.is_idle() {
        return false;
    }
    // Who has begun may finish.
    tokio::select! {
        biased;
        arrived = head => arrived.is_ok(),
        () = activity.lost(patience.at_most(GRACE)) => false,
    }
}

async fn first_head(stream: &Stream, heads: HeadLimits, activity: &Activity) -> io::Result<()> {
    // Behind TLS there are buffers anyway.
    let Stream::Plain(stream) = stream else { return Ok(()) };
    let is_enough = |bytes: &[u8]| {
        activity.heard();
        is_whole(bytes)
    };
    peek_until(stream, heads.bytes(), is_enough).await
}

/// Whether the library would do something about these bytes, other than wait for more.
fn is_whole(bytes: &[u8]) -> bool {
    let mut headers = [EMPTY_HEADER; HEADERS_USUAL];
    !matches!(Request::new(&mut headers).parse(bytes), Ok(httparse::Status::Partial))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_whole_with_its_last_byte() {
        let head = b"POST /ids HTTP/1.1\r\nhost: x\r\n\r\n";
        assert!((1..head.len()).all(|length| !is_whole(&head[..length])));
        assert!(is_whole(head) && is_whole(&[head, &b"{}"[..]].concat()));
    }

    #[test]
    fn what_never_becomes_a_head_is_answered_at_once() {
        let many = format!("GET / HTTP/1.1\r\n{}", "a: b\r\n".repeat(HEADERS_USUAL + 1));
        for bytes in [
            &b"\x16\x03\x01\x02"[..],
            b"PRI * HTTP/2.0\r\n",
            b"GET / HTTP/1.1\r\n:",
            many.as_bytes(),
        ] {
            assert!(is_whole(bytes), "{bytes:?}");
        }
    }
}
