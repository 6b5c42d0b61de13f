//! Error texts for requests that could not be read: the library answers them by a bare status.

use bytes::{Bytes, BytesMut};
use frazil_wire::{ApiError, Reason};

use crate::config::Limits;

/// What a bare answer has, and what is written in place of it.
const NO_BODY: &str = "content-length: 0\r\n";

/// The largest heads that are read.
#[derive(Clone, Copy, Debug)]
pub(super) struct HeadLimits {
    bytes: usize,
    headers: usize,
}

impl HeadLimits {
    pub(super) fn new(limits: &Limits) -> Self {
        // The library reads no less.
        Self { bytes: limits.max_head_bytes.max(8192), headers: limits.max_headers }
    }

    pub(super) const fn bytes(self) -> usize {
        self.bytes
    }

    /// A bare answer with a problem as its body. `None`: it is something else.
    pub(super) fn in_words(self, bare: &[u8]) -> Option<Bytes> {
        let head = std::str::from_utf8(bare).ok()?;
        let status = head.strip_prefix("HTTP/1.")?.get(2..5)?;
        let error = self.error(status)?;
        let (before, after) = head.split_once(NO_BODY).filter(|_| head.ends_with("\r\n\r\n"))?;
        let body = serde_json::to_vec(&error.to_problem()).ok()?;
        let described = format!(
            "content-type: application/problem+json\r\ncache-control: no-store\r\n\
             content-length: {}\r\n",
            body.len()
        );
        let mut words = BytesMut::new();
        for part in [before.as_bytes(), described.as_bytes(), after.as_bytes(), &body] {
            words.extend_from_slice(part);
        }
        Some(words.freeze())
    }

    fn error(self, status: &str) -> Option<ApiError> {
        let Self { bytes, headers } = self;
        match status {
            "400" => {
                let detail = "the head of the request is not as HTTP/1.1 writes it";
                Some(ApiError::new(Reason::InvalidArgument, detail))
            }
            "414" => Some(ApiError::new(Reason::UriTooLong, "the path is longer than any")),
            "431" => {
                let detail = format_args!(
                    "the request line and the headers have more than {bytes} bytes, or are more \
                     than {headers} headers"
                );
                Some(ApiError::new(Reason::HeadTooLarge, detail))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_words(bare: &str) -> Option<String> {
        let words = HeadLimits::new(&Limits::default()).in_words(bare.as_bytes())?;
        Some(String::from_utf8(words.to_vec()).unwrap())
    }

    #[test]
    fn a_bare_answer_gets_a_body_and_keeps_its_head() {
        for (status, reason) in [
            ("400 Bad Request", "INVALID_ARGUMENT"),
            ("414 URI Too Long", "URI_TOO_LONG"),
            ("431 Request Header Fields Too Large", "HEAD_TOO_LARGE"),
        ] {
            let line = format!("HTTP/1.1 {status}\r\nconnection: close\r\n");
            let words = in_words(&format!("{line}{NO_BODY}date: now\r\n\r\n")).unwrap();
            let (head, body) = words.split_once("\r\n\r\n").unwrap();
            assert!(head.starts_with(&line) && head.ends_with("date: now"), "{head}");
            assert!(head.contains(&format!("content-length: {}\r\n", body.len())), "{head}");
            let problem: frazil_wire::Problem = serde_json::from_str(body).unwrap();
            assert_eq!(
                (problem.reason.as_str(), problem.status.to_string()),
                (reason, status[..3].into())
            );
        }
    }

    #[test]
    fn everything_else_is_left_as_it_is() {
        for other in [
            "",
            "0\r\n\r\n",
            "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
            "HTTP/1.1 100 Continue\r\n\r\n",
            "HTTP/1.1 400 Bad Request\r\ncontent-length: 2\r\n\r\n{}",
            "HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n",
            "HTTP/1.",
        ] {
            assert_eq!(in_words(other), None, "{other:?}");
        }
    }
}
