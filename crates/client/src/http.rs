//! A server asked over HTTP/1.1, on connections that are kept.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use frazil_id::{Id, Layout};
use frazil_wire::{ApiError, Info, Problem};
use http_body_util::{BodyExt, Empty, Limited};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{
    ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, HeaderName, HeaderValue, USER_AGENT,
};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;

use crate::clock;
use crate::error::Error;
use crate::host::Way;
use crate::link;
use crate::reply;
use crate::retry_after;
use crate::server_info::ServerInfo;

/// What an answer repeats, so that one to another request is known.
const NONCE: HeaderName = HeaderName::from_static("frazil-nonce");
const BINARY: HeaderValue = HeaderValue::from_static("application/octet-stream");
const AGENT: HeaderValue =
    HeaderValue::from_static(concat!("frazil-rust/", env!("CARGO_PKG_VERSION")));
/// Connections to one server that are kept: more than a client has requests at a time.
const IDLE_MAX: usize = 32;
/// Bytes of a failure's description, and of what a server says of itself.
const TEXT_BYTES_MAX: usize = 256 * 1024;

type Sender = SendRequest<Empty<Bytes>>;

/// The connections to one server.
#[derive(Debug, Default)]
pub(crate) struct Connections {
    idle: Mutex<Vec<Sender>>,
}

impl Connections {
    /// Asks for exactly so many Ids.
    pub(crate) async fn ids(
        &self,
        way: &Way,
        count: u32,
        layout: Option<&Layout>,
    ) -> Result<Vec<Id>, Error> {
        let name = &way.endpoint.text;
        let nonce = nonce()?;
        let path = format!("{}/v1/ids?count={count}{}", way.endpoint.prefix, way.scope_query);
        let mut request = request(way, Method::POST, &path)?;
        request.headers_mut().insert(ACCEPT, BINARY);
        request.headers_mut().insert(NONCE, nonce.clone());
        let most = TEXT_BYTES_MAX.max(count as usize * 8 + 1);
        let answer = self.exchange(way, request, most).await?;
        if answer.status() != StatusCode::OK {
            return Err(refusal(way, &answer));
        }
        // Before anything else of it is believed.
        let repeated = answer.headers().get(NONCE);
        if repeated != Some(&nonce) {
            return Err(Error::Replayed { endpoint: name.clone(), has_nonce: repeated.is_some() });
        }
        if answer.headers().get(CONTENT_TYPE) != Some(&BINARY) {
            return Err(Error::broken(name, "the answer is not in the form that was asked for"));
        }
        reply::from_bytes(answer.body(), count, layout).map_err(|flaw| Error::broken(name, flaw))
    }

    /// Asks what the server is.
    pub(crate) async fn info(&self, way: &Way) -> Result<ServerInfo, Error> {
        let path = format!("{}/v1/info", way.endpoint.prefix);
        let answer = self.exchange(way, request(way, Method::GET, &path)?, TEXT_BYTES_MAX).await?;
        if answer.status() != StatusCode::OK {
            return Err(refusal(way, &answer));
        }
        let nonsense = |why: &dyn std::fmt::Display| {
            Error::broken(
                &way.endpoint.text,
                format_args!("what it says of itself is not understood: {why}"),
            )
        };
        let info: Info = serde_json::from_slice(answer.body()).map_err(|error| nonsense(&error))?;
        Ok(ServerInfo {
            version: info.version,
            namespace: info.namespace,
            layout: info.layout.text.parse().map_err(|error| nonsense(&error))?,
            node: info.node.name,
            state: info.node.state,
            max_count: info.limits.max_count,
        })
    }

    /// One request and its answer; the connection is kept if both were whole.
    async fn exchange(
        &self,
        way: &Way,
        mut request: Request<Empty<Bytes>>,
        most: usize,
    ) -> Result<Response<Bytes>, Error> {
        let name = &way.endpoint.text;
        let unreachable = |error: hyper::Error| Error::unreachable(name, &error);
        // One that was kept may have been closed meanwhile; then nothing was sent on it.
        let (sender, answer) = loop {
            let kept = self.kept();
            let is_fresh = kept.is_none();
            let mut sender = match kept {
                Some(kept) => kept,
                None => connect(way).await?,
            };
            match sender.try_send_request(request).await {
                Ok(answer) => break (sender, answer),
                Err(mut failure) => match failure.take_message() {
                    Some(unsent) if !is_fresh => request = unsent,
                    _ => return Err(unreachable(failure.into_error())),
                },
            }
        };
        let (head, body) = answer.into_parts();
        let read = Limited::new(body, most).collect().await;
        let body = read.map_err(|error| Error::broken(name, error))?.to_bytes();
        self.keep(sender);
        Ok(Response::from_parts(head, body))
    }

    fn kept(&self) -> Option<Sender> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(sender) = idle.pop() {
            if sender.is_ready() {
                return Some(sender);
            }
        }
        None
    }

    fn keep(&self, sender: Sender) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if !sender.is_closed() && idle.len() < IDLE_MAX {
            idle.push(sender);
        }
    }
}

async fn connect(way: &Way) -> Result<Sender, Error> {
    let name = &way.endpoint.text;
    let stream = link::open(&way.endpoint, way.trust.as_deref()).await;
    let stream = stream.map_err(|error| Error::unreachable(name, &error))?;
    let begun = handshake(TokioIo::new(stream)).await;
    let (sender, connection) = begun.map_err(|error| Error::unreachable(name, &error))?;
    // It ends when the sender is dropped, or the other side closes.
    tokio::spawn(async move {
        let _ = connection.await;
    });
    Ok(sender)
}

fn request(way: &Way, method: Method, path: &str) -> Result<Request<Empty<Bytes>>, Error> {
    let mut request = Request::builder()
        .method(method)
        .uri(path)
        .header(HOST, &way.endpoint.authority)
        .header(USER_AGENT, AGENT);
    if let Some(key) = &way.key {
        request = request.header(AUTHORIZATION, key.current().header());
    }
    request.body(Empty::new()).map_err(Error::invalid)
}

/// What no other request has had, also not one of a process that this one was forked from.
fn nonce() -> Result<HeaderValue, Error> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)
        .map_err(|error| Error::invalid(format_args!("the system has no random bits: {error}")))?;
    HeaderValue::from_str(&format!("{:032x}", u128::from_ne_bytes(bytes))).map_err(Error::invalid)
}

/// What an answer that is not 200 says.
fn refusal(way: &Way, answer: &Response<Bytes>) -> Error {
    let endpoint = way.endpoint.text.clone();
    let problem = serde_json::from_slice::<Problem>(answer.body()).ok();
    if let Some(problem) = problem
        && let Ok(reason) = problem.reason.parse()
    {
        let retry_after = problem.retry_after_ms.map(Duration::from_millis);
        let error = ApiError { retry_after, ..ApiError::new(reason, problem.detail) };
        return Error::Refused { endpoint, error };
    }
    let status = answer.status().as_u16();
    Error::Broken {
        endpoint,
        why: format!("HTTP status {status} without a reason").into(),
        status: Some(status),
        retry_after: retry_after::read(answer.headers(), clock::unix),
    }
}
