//! Servers that answer as they are told, byte for byte.

use std::ops::Deref;

use frazil_client::testing::FakeServer;
pub(crate) use frazil_client::testing::{FakeAnswer as Act, FakeRequest, http_answer as answer};

pub(crate) struct Impostor(FakeServer);

impl Impostor {
    pub(crate) async fn start(act: impl Fn(&FakeRequest) -> Act + Send + Sync + 'static) -> Self {
        Self(FakeServer::start_with(act).await.unwrap())
    }
}

impl Deref for Impostor {
    type Target = FakeServer;

    fn deref(&self) -> &FakeServer {
        &self.0
    }
}

/// IDs that no other turn has, as a body: all of a layout with 63 bits.
pub(crate) fn body(turn: u64, count: u64) -> Vec<u8> {
    (0..count).flat_map(|place| (turn * 1_000_000 + place + 1).to_be_bytes()).collect()
}

/// A refusal as servers write it, known to this client or not.
pub(crate) fn problem(
    asked: &FakeRequest,
    status: u16,
    reason: &str,
    retry_after_ms: Option<u64>,
) -> Act {
    let wait = retry_after_ms.map_or_else(|| "null".to_owned(), |ms| ms.to_string());
    let body = format!(
        "{{\"type\":\"urn\",\"title\":\"t\",\"status\":{status},\"detail\":\"d\",\
         \"reason\":\"{reason}\",\"help\":\"h\",\"retry_after_ms\":{wait}}}"
    );
    let headers = [("content-type", "application/problem+json"), ("frazil-nonce", asked.nonce())];
    Act::Bytes(answer(&format!("{status} X"), &headers, body.as_bytes()))
}
