//! What one client asks for, and what it was told.

use std::io;

use super::Pressure;
use crate::http::{self, Reply};
use crate::node::NodeEndpoint;
use crate::resp;

/// What a client asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IdDemand {
    /// So many at a time.
    Batches(u32),
    /// One, a few, or many.
    Mixed,
    /// Single IDs over RESP, one or some at once: what nodes issue by their fastest path.
    Resp,
}

impl IdDemand {
    /// How many the next request asks for.
    pub(super) fn count(self, random: &mut fastrand::Rng) -> u32 {
        match (self, random.u32(0..4)) {
            (Self::Batches(count), _) => count,
            (_, 0 | 1) => 1,
            (Self::Mixed, 2) => random.u32(100..=1000),
            _ => random.u32(2..=20),
        }
    }
}

/// A connection in the client's language.
#[derive(Debug)]
pub(super) enum ClientConnection {
    /// And the rest of the path.
    Http(http::Connection, String),
    Resp(resp::Connection),
}

/// What a request was answered.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Response {
    pub(super) ids: Vec<u64>,
    /// Whose they are; RESP does not say.
    pub(super) token: Option<u64>,
    /// Why it is not what was asked for.
    pub(super) error: Option<ResponseError>,
}

/// Why an answer is not what was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ResponseError {
    /// The node said no, and why.
    Refused(String),
    /// No node may say this.
    Strange(String),
}

impl ClientConnection {
    pub(super) fn open(
        endpoint: &NodeEndpoint,
        demand: IdDemand,
        pressure: &Pressure,
    ) -> io::Result<Self> {
        let patience = pressure.patience;
        let rest = pressure.scope.map_or_else(String::new, |scope| format!("&scope={scope}"));
        Ok(match demand {
            IdDemand::Resp => Self::Resp(resp::Connection::open(endpoint.resp, patience)?),
            _ => Self::Http(http::Connection::open(endpoint.address, patience)?, rest),
        })
    }

    pub(super) fn ask(&mut self, count: u32) -> io::Result<Response> {
        match self {
            Self::Http(connection, rest) => {
                let path = format!("/v1/ids?count={count}{rest}");
                let reply = connection.ask("POST", &path, "application/octet-stream")?;
                Ok(response(&reply, count).unwrap_or_else(Response::but))
            }
            Self::Resp(connection) => {
                let resp::Replies { ids, refused } = connection.incr(count)?;
                Ok(Response { ids, token: None, error: refused.map(ResponseError::Refused) })
            }
        }
    }
}

impl Response {
    fn but(error: ResponseError) -> Self {
        Self { error: Some(error), ..Self::default() }
    }
}

/// An answer is whole if it has as many IDs as were asked for, and says whose they are.
fn response(reply: &Reply, count: u32) -> Result<Response, ResponseError> {
    if reply.status != 200 {
        return Err(ResponseError::Refused(reason(reply)));
    }
    let (words, rest) = reply.body.as_chunks::<8>();
    let ids: Vec<u64> = words.iter().map(|word| u64::from_be_bytes(*word)).collect();
    if !rest.is_empty() || ids.len() != count as usize {
        let what = format!("{} bytes for {count} IDs", reply.body.len());
        return Err(ResponseError::Strange(what));
    }
    if reply.token.is_none() {
        return Err(ResponseError::Strange("an answer without a token".to_owned()));
    }
    Ok(Response { ids, token: reply.token, error: None })
}

/// The reason in a problem, or its status.
fn reason(reply: &Reply) -> String {
    let problem = serde_json::from_slice::<serde_json::Value>(&reply.body).unwrap_or_default();
    problem["reason"].as_str().map_or_else(|| format!("HTTP {}", reply.status), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(status: u16, token: Option<u64>, body: &[u8]) -> Reply {
        Reply { status, token, body: body.to_vec() }
    }

    #[test]
    fn an_answer_that_is_cut_short_too_long_or_of_nobody_is_strange() {
        let whole = [0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 8];
        let expected = Response { ids: vec![7, 8], token: Some(3), error: None };
        assert_eq!(response(&reply(200, Some(3), &whole), 2), Ok(expected));
        let strange = |token, body: &[u8], count| {
            matches!(response(&reply(200, token, body), count), Err(ResponseError::Strange(_)))
        };
        assert!(strange(Some(3), &whole[..8], 2), "one is missing");
        assert!(strange(Some(3), &whole[..15], 2), "one is cut");
        assert!(strange(Some(3), &[], 2), "none");
        assert!(strange(Some(3), &whole, 1), "one too many");
        assert!(strange(None, &whole, 2), "nobody's");
    }

    #[test]
    fn a_refusal_is_known_by_its_reason() {
        let problem = reply(503, None, br#"{"reason":"NO_WORKER"}"#);
        assert_eq!(response(&problem, 1), Err(ResponseError::Refused("NO_WORKER".to_owned())));
        let unsaid = reply(500, None, b"");
        assert_eq!(response(&unsaid, 1), Err(ResponseError::Refused("HTTP 500".to_owned())));
    }

    #[test]
    fn a_mixed_client_asks_for_one_for_a_few_and_for_many() {
        let mut random = fastrand::Rng::with_seed(1);
        let mut draw =
            |demand: IdDemand| (0..100).map(|_| demand.count(&mut random)).collect::<Vec<_>>();
        let mixed = draw(IdDemand::Mixed);
        for range in [1..=1, 2..=20, 100..=1000] {
            assert!(mixed.iter().any(|count| range.contains(count)), "{range:?}: {mixed:?}");
        }
        let pipelines = draw(IdDemand::Resp);
        assert!(pipelines.contains(&1) && pipelines.iter().all(|count| *count <= 20));
        assert!(draw(IdDemand::Batches(7)).iter().all(|count| *count == 7));
    }
}
