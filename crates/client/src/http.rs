//! A server asked over HTTP/1.1, on connections that are kept.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use frazil_id::{Id, Layout, LayoutError};
use frazil_wire::{ApiError, Info, Problem, query_value};
use http_body_util::{BodyExt, Empty, Limited};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{
    ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue, USER_AGENT,
};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::runtime;

use crate::ask::{Answer, Ask};
use crate::clock;
use crate::error::Error;
use crate::host::Target;
use crate::link;
use crate::reply;
use crate::retry_after;
use crate::server_info::ServerInfo;

/// What an answer repeats, so that one to another request is known.
const NONCE: HeaderName = HeaderName::from_static("frazil-nonce");
const BINARY: HeaderValue = HeaderValue::from_static("application/octet-stream");
const AGENT: HeaderValue =
    HeaderValue::from_static(concat!("frazil-rust/", env!("CARGO_PKG_VERSION")));
/// Connections to one server that are kept for a runtime: more than it has requests at a time.
const IDLE_MAX: usize = 32;
/// Bytes of a failure's description, and of what a server says of itself.
const TEXT_BYTES_MAX: usize = 256 * 1024;
/// Bytes of a line for people that is repeated.
const LINE_BYTES_MAX: usize = 200;
/// Bytes of an answer to another question: metrics, or the JSON of some thousand IDs.
const ANSWER_BYTES_MAX: usize = 1 << 20;

type Sender = SendRequest<Empty<Bytes>>;

/// The connections to one server. Each call is one attempt: who calls decides about another, and for
/// how long to wait.
#[derive(Debug)]
pub(crate) struct Connections {
    target: Arc<Target>,
    idle: Mutex<Vec<Idle>>,
}

/// A connection that is kept. Its runtime alone uses it: another one would have to wake that for every
/// request, and may outlive it.
#[derive(Debug)]
struct Idle {
    runtime: runtime::Id,
    sender: Sender,
}

/// IDs that are asked for.
#[derive(Debug)]
pub struct IdsRequest<'a> {
    /// How many: exactly these.
    pub count: u32,
    /// Of which scope; empty: of none.
    pub scope: &'a str,
    /// What else is said to the server.
    pub headers: HeaderMap,
}

/// IDs that a server gave, as many as asked for and in order, and what it said with them.
#[derive(Debug)]
pub struct IdsAnswer {
    /// The IDs.
    pub ids: Vec<Id>,
    /// The headers of the answer.
    pub headers: HeaderMap,
}

impl Connections {
    pub(crate) const fn new(target: Arc<Target>) -> Self {
        Self { target, idle: Mutex::new(Vec::new()) }
    }

    /// Asks for IDs.
    pub(crate) async fn ids(
        &self,
        wanted: IdsRequest<'_>,
        layout: Option<&Layout>,
    ) -> Result<IdsAnswer, Error> {
        let IdsRequest { count, scope, headers } = wanted;
        let (target, nonce) = (&*self.target, nonce()?);
        let name = &target.endpoint.text;
        let mut path = format!("{}/v1/ids?count={count}", target.endpoint.prefix);
        if !scope.is_empty() {
            let _ = write!(path, "&scope={}", query_value(scope));
        }
        let mut request = request(target, Method::POST, &path)?;
        request.headers_mut().extend(headers);
        request.headers_mut().insert(ACCEPT, BINARY);
        request.headers_mut().insert(NONCE, nonce.clone());
        let most = TEXT_BYTES_MAX.max(count as usize * 8 + 1);
        let answer = self.exchange(request, most).await?;
        if answer.status() != StatusCode::OK {
            return Err(refusal(target, &answer));
        }
        check_nonce(target, &answer, &nonce)?;
        if answer.headers().get(CONTENT_TYPE) != Some(&BINARY) {
            return Err(Error::broken(name, "the answer is not in the form that was asked for"));
        }
        let (head, body) = answer.into_parts();
        let ids = reply::from_bytes(&body, count, layout);
        let ids = ids.map_err(|answer_error| Error::broken(name, answer_error))?;
        Ok(IdsAnswer { ids, headers: head.headers })
    }

    /// Asks what the server is.
    pub(crate) async fn info(&self) -> Result<ServerInfo, Error> {
        let target = &*self.target;
        let path = format!("{}/v1/info", target.endpoint.prefix);
        let answer = self.exchange(request(target, Method::GET, &path)?, TEXT_BYTES_MAX).await?;
        if answer.status() != StatusCode::OK {
            return Err(refusal(target, &answer));
        }
        let nonsense = |error: Box<dyn std::error::Error + Send + Sync>| {
            let why = "what it says of itself is not understood";
            Error::broken(&target.endpoint.text, why).because(error)
        };
        let info: Info =
            serde_json::from_slice(answer.body()).map_err(|error| nonsense(error.into()))?;
        Ok(ServerInfo {
            version: info.version,
            namespace: info.namespace,
            layout: info
                .layout
                .text
                .parse()
                .map_err(|error: LayoutError| nonsense(error.into()))?,
            node: info.node.name,
            state: info.node.state,
            max_count: info.limits.max_count,
        })
    }

    /// Asks something else.
    pub(crate) async fn other(&self, ask: &Ask) -> Result<Answer, Error> {
        let (target, nonce) = (&*self.target, nonce()?);
        let path = format!("{}{}", target.endpoint.prefix, ask.path);
        let mut request = request(target, ask.method.clone(), &path)?;
        request.headers_mut().insert(NONCE, nonce.clone());
        let answer = self.exchange(request, ANSWER_BYTES_MAX).await?;
        if answer.status().is_success() {
            if ask.needs_nonce || answer.headers().contains_key(NONCE) {
                check_nonce(target, &answer, &nonce)?;
            }
        } else if !ask.takes_any_status {
            return Err(refusal(target, &answer));
        }
        Ok(Answer { status: answer.status().as_u16(), body: answer.into_body().into() })
    }

    /// One request and its answer; the connection is kept if both were whole.
    async fn exchange(
        &self,
        mut request: Request<Empty<Bytes>>,
        most: usize,
    ) -> Result<Response<Bytes>, Error> {
        let name = &self.target.endpoint.text;
        let unreachable = |error: hyper::Error| Error::unreachable(name, error);
        // One that was kept may have been closed meanwhile; then nothing was sent on it.
        let (sender, answer) = loop {
            let kept = self.kept().await;
            let is_fresh = kept.is_none();
            let mut sender = match kept {
                Some(kept) => kept,
                None => connect(&self.target).await?,
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
        let body = read
            .map_err(|error| Error::broken(name, "its answer cannot be read").because(error))?
            .to_bytes();
        self.keep(sender);
        Ok(Response::from_parts(head, body))
    }

    /// Whether a connection is kept that is still open.
    pub(crate) fn is_connected(&self) -> bool {
        self.idle().iter().any(|kept| !kept.sender.is_closed())
    }

    async fn kept(&self) -> Option<Sender> {
        while let Some(mut sender) = self.last_kept() {
            // It may be a moment from the end of the answer before.
            if sender.ready().await.is_ok() {
                return Some(sender);
            }
        }
        None
    }

    /// Takes the one that was last used here.
    fn last_kept(&self) -> Option<Sender> {
        let (own, mut idle) = (runtime::Handle::current().id(), self.idle());
        let last = idle.iter().rposition(|kept| kept.runtime == own);
        if last.is_none() {
            idle.retain(|kept| !kept.sender.is_closed());
        }
        last.map(|place| idle.remove(place).sender)
    }

    fn keep(&self, sender: Sender) {
        let (own, mut idle) = (runtime::Handle::current().id(), self.idle());
        let is_full = idle.iter().filter(|kept| kept.runtime == own).count() >= IDLE_MAX;
        if !sender.is_closed() && !is_full {
            idle.push(Idle { runtime: own, sender });
        }
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Idle>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn connect(target: &Target) -> Result<Sender, Error> {
    let name = &target.endpoint.text;
    let stream = link::open(&target.endpoint, target.trust.as_deref()).await;
    let stream = stream.map_err(|error| Error::unreachable(name, error))?;
    let begun = handshake(TokioIo::new(stream)).await;
    let (sender, connection) = begun.map_err(|error| Error::unreachable(name, error))?;
    // It ends when the sender is dropped, or the other side closes.
    tokio::spawn(async move {
        let _ = connection.await;
    });
    Ok(sender)
}

fn request(target: &Target, method: Method, path: &str) -> Result<Request<Empty<Bytes>>, Error> {
    let mut request = Request::builder()
        .method(method)
        .uri(path)
        .header(HOST, &target.endpoint.authority)
        .header(USER_AGENT, AGENT);
    if let Some(key) = &target.key {
        request = request.header(AUTHORIZATION, key.current().header());
    }
    request.body(Empty::new()).map_err(unwritten)
}

/// What no other request has had, also not one of a process that this one was forked from.
fn nonce() -> Result<HeaderValue, Error> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)
        .map_err(|error| Error::invalid("the system has no random bits").because(error))?;
    HeaderValue::from_str(&format!("{:032x}", u128::from_ne_bytes(bytes)))
        .map_err(|error| unwritten(error.into()))
}

fn unwritten(error: hyper::http::Error) -> Error {
    Error::invalid("the request cannot be written").because(error)
}

/// Refuses an answer to another request, before anything else of it is believed.
fn check_nonce(target: &Target, answer: &Response<Bytes>, sent: &HeaderValue) -> Result<(), Error> {
    let repeated = answer.headers().get(NONCE);
    if repeated == Some(sent) {
        return Ok(());
    }
    let endpoint = target.endpoint.text.clone();
    Err(Error::Replayed { endpoint, has_nonce: repeated.is_some() })
}

/// A body that is a line for people, as a server or a proxy writes it to clients that it cannot serve.
fn short_text(body: &[u8]) -> Option<&str> {
    let text = str::from_utf8(body).ok()?.trim();
    let is_line =
        !text.is_empty() && text.len() <= LINE_BYTES_MAX && !text.contains(char::is_control);
    (is_line && !text.starts_with(['<', '{', '['])).then_some(text)
}

/// What an answer that is not 200 says.
fn refusal(target: &Target, answer: &Response<Bytes>) -> Error {
    let endpoint = target.endpoint.text.clone();
    let problem = serde_json::from_slice::<Problem>(answer.body()).ok();
    if let Some(problem) = problem
        && let Ok(reason) = problem.reason.parse()
    {
        let mut error = ApiError::new(reason, problem.detail);
        error.retry_after = problem.retry_after_ms.map(Duration::from_millis);
        return Error::Refused { endpoint, error };
    }
    let status = answer.status().as_u16();
    let why = match short_text(answer.body()) {
        Some(text) => format!("status {status}, {text:?}"),
        None => format!("status {status} without a reason"),
    };
    Error::Broken {
        endpoint,
        why: why.into(),
        cause: None,
        status: Some(status),
        retry_after: retry_after::read(answer.headers(), clock::unix),
    }
}
