//! Names of requests, by which a client's failure is found in the log.

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;
use std::time::Duration;

use hyper::HeaderMap;
use hyper::header::{HeaderName, HeaderValue};

/// Where clients name their requests, and answers repeat it.
pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// A UUID has 36; a longer text is no name.
const BYTES_MAX: usize = 128;

/// The name of a request: the client's, or one that is made when it is needed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RequestId {
    /// As the client wrote it: printable, and not too long.
    FromClient(HeaderValue),
    /// Of a connection's request that began then: no other request of the process is named so.
    Generated { connection: u64, began: Duration },
}

impl RequestId {
    pub(crate) fn of(headers: &HeaderMap, connection: u64, began: Duration) -> Self {
        let from_client = headers.get(&REQUEST_ID).filter(|from_client| {
            (1..=BYTES_MAX).contains(&from_client.len())
                && from_client.as_bytes().iter().all(u8::is_ascii_graphic)
        });
        from_client.cloned().map_or(Self::Generated { connection, began }, Self::FromClient)
    }

    /// For the header of an answer.
    pub(crate) fn value(&self) -> HeaderValue {
        match self {
            Self::FromClient(value) => value.clone(),
            Self::Generated { .. } => {
                let text = HeaderValue::from_str(&self.to_string());
                text.unwrap_or_else(|_| HeaderValue::from_static("none"))
            }
        }
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// Tells processes apart.
        static PROCESS: LazyLock<u64> = LazyLock::new(|| RandomState::new().hash_one(0));
        match self {
            Self::FromClient(value) => f.write_str(value.to_str().unwrap_or_default()),
            Self::Generated { connection, began } => {
                write!(f, "{:016x}-{connection:x}-{:x}", *PROCESS, began.as_nanos())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clients_name_is_kept_if_it_is_one() {
        let of = |text: &[u8]| {
            let mut headers = HeaderMap::new();
            headers.insert(REQUEST_ID, HeaderValue::from_bytes(text).unwrap());
            RequestId::of(&headers, 7, Duration::from_nanos(16))
        };
        assert_eq!(of(b"a-1/b").to_string(), "a-1/b");
        let long = [b'x'; BYTES_MAX + 1];
        for none in [&b""[..], b"a b", b"a\tb", &long, "\u{e9}".as_bytes()] {
            let made = of(none).to_string();
            assert!(made.ends_with("-7-10"), "{made}");
            assert_eq!(of(none).value(), made);
        }
        assert_eq!(of(&long[1..]).to_string().len(), BYTES_MAX);
    }
}
