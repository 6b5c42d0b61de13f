//! The answers of a fake server, and their bytes.

use std::future;
use std::time::Duration;

use frazil_wire::{ApiError, Reason};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::FakeRequest;

/// IDs that one request can be given.
const TURN: u64 = 1_000_000;

/// What a fake server does with a request for IDs.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum FakeAnswer {
    /// Gives as many as it is asked for, that no other request gets.
    Ids,
    /// Refuses, as servers do.
    Refusal(ApiError),
    /// Sends these bytes.
    Bytes(Vec<u8>),
    /// Sends these bytes and closes the connection.
    BytesThenClose(Vec<u8>),
    /// Says nothing, and keeps the connection.
    Silence,
}

impl FakeAnswer {
    /// A refusal for a reason of the catalogue.
    #[must_use]
    pub fn refusal(reason: Reason) -> Self {
        Self::Refusal(ApiError::new(reason, "so says the test"))
    }

    /// The same, and after how long to ask again.
    #[must_use]
    pub fn refusal_for(reason: Reason, retry_after: Duration) -> Self {
        Self::Refusal(ApiError::new(reason, "so says the test").retry_after(retry_after))
    }

    /// Sends it. `false`: that was the last on this connection.
    pub(super) async fn send(self, asked: &FakeRequest, stream: &mut TcpStream) -> bool {
        let (bytes, goes_on) = match self {
            Self::Ids => (ids(asked), true),
            Self::Refusal(error) => (problem(asked, &error), true),
            Self::Bytes(bytes) => (bytes, true),
            Self::BytesThenClose(bytes) => (bytes, false),
            Self::Silence => future::pending().await,
        };
        let was_sent = stream.write_all(&bytes).await.is_ok();
        if !goes_on {
            let _ = stream.shutdown().await;
        }
        was_sent && goes_on
    }
}

/// An HTTP answer with some headers and a body.
#[must_use]
pub fn http_answer(status: &str, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let mut head = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n", body.len());
    for (name, value) in headers {
        head += &format!("{name}: {value}\r\n");
    }
    [format!("{head}\r\n").as_bytes(), body].concat()
}

fn ids(asked: &FakeRequest) -> Vec<u8> {
    let ids = (1..=asked.count()).map(|place| asked.turn * TURN + place);
    let body: Vec<u8> = ids.flat_map(u64::to_be_bytes).collect();
    let headers = [("content-type", "application/octet-stream"), ("frazil-nonce", asked.nonce())];
    http_answer("200 OK", &headers, &body)
}

fn problem(asked: &FakeRequest, error: &ApiError) -> Vec<u8> {
    // An object of strings and numbers is always JSON.
    let body = serde_json::to_vec(&error.to_problem()).unwrap_or_default();
    let headers = [("content-type", "application/problem+json"), ("frazil-nonce", asked.nonce())];
    http_answer(&format!("{} Refused", error.reason.http_status()), &headers, &body)
}
