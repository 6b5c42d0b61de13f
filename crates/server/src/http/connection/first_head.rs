//! The head of the first request of a connection, waited for before the library is given the
//! connection: that one holds almost twenty kilobytes from the first byte on.

use std::io;

use bytes::{Bytes, BytesMut};
use httparse::{EMPTY_HEADER, Request};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio_util::sync::CancellationToken;

use super::HEADERS_USUAL;
use super::activity::{Activity, PhaseTimeouts};
use super::unread::HeadLimits;
use crate::http::GRACE;
use crate::net::peek::peek_until;
use crate::net::stream::Stream;

/// Heads have about as many: there is room for so many more whenever some are read.
const HEAD_USUAL_BYTES: usize = 512;

/// Waits for the client to send a head, or anything else that must be answered. `None` if that takes
/// too long. What had to be read for it is given back: nothing of a plain connection, all of it
/// behind TLS.
pub(super) async fn wait_for_first_head(
    stream: &mut Stream,
    heads: HeadLimits,
    activity: &Activity,
    patience: PhaseTimeouts,
    closing: &CancellationToken,
) -> Option<Bytes> {
    let head = first_head(stream, heads, activity);
    tokio::pin!(head);
    tokio::select! {
        biased;
        arrived = &mut head => return arrived.ok(),
        () = activity.lost(patience) => return None,
        () = closing.cancelled() => {}
    }
    if activity.is_idle() {
        return None;
    }
    // Who has begun may finish.
    tokio::select! {
        biased;
        arrived = head => arrived.ok(),
        () = activity.lost(patience.at_most(GRACE)) => None,
    }
}

async fn first_head(
    stream: &mut Stream,
    heads: HeadLimits,
    activity: &Activity,
) -> io::Result<Bytes> {
    let is_enough = |bytes: &[u8]| {
        activity.heard();
        is_whole(bytes)
    };
    match stream {
        Stream::Plain(stream) => {
            peek_until(stream, heads.bytes(), is_enough).await.map(|()| Bytes::new())
        }
        Stream::Tls(stream) => read_until(stream, heads.bytes(), is_enough).await,
    }
}

/// Reads until `is_enough` says so of the bytes so far, there are `most` of them, or the client sends
/// no more.
async fn read_until(
    stream: &mut (impl AsyncRead + Unpin),
    most: usize,
    is_enough: impl Fn(&[u8]) -> bool,
) -> io::Result<Bytes> {
    let mut bytes = BytesMut::new();
    while bytes.len() < most {
        bytes.reserve(HEAD_USUAL_BYTES);
        // Looked at only when something came: until then the connection is idle.
        if stream.read_buf(&mut bytes).await? == 0 || is_enough(&bytes) {
            break;
        }
    }
    Ok(bytes.freeze())
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
