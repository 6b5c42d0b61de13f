//! Other nodes, asked over connections that are kept.

mod link;

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use bytes::{Buf, Bytes};
use frazil_id::Id;
use frazil_wire::{ApiError, Problem};
use http_body_util::{BodyExt, Empty, Limited};
use hyper::client::conn::http1::SendRequest;
use hyper::header::{ACCEPT, AUTHORIZATION, HOST, HeaderMap, HeaderName, HeaderValue};
use hyper::{Request, Response, Uri};
use rustls::ClientConfig;

use crate::config::Config;

/// Says that a node forwards a request, and which one. Such a request is never forwarded again.
pub(crate) const FORWARDED: HeaderName = HeaderName::from_static("frazil-forwarded");
/// How long the client of a forwarded request still waits, in milliseconds.
pub(crate) const PATIENCE: HeaderName = HeaderName::from_static("frazil-patience-ms");
/// Who issued the Ids of an answer, where it stands, and the token of the lease.
pub(crate) const NODE: HeaderName = HeaderName::from_static("frazil-node");
pub(crate) const REGION: HeaderName = HeaderName::from_static("frazil-region");
pub(crate) const TOKEN: HeaderName = HeaderName::from_static("frazil-token");

/// Connections to one node that are kept by one thread: as many as it has requests at a time.
const IDLE_MAX: usize = 128;
/// Bytes of a failure's description: a few hundred.
const PROBLEM_BYTES_MAX: usize = 16 * 1024;
/// A key is a line, not a disk image: what is longer is the wrong file.
const KEY_BYTES_MAX: usize = 4096;

/// Asks other nodes for Ids.
#[derive(Debug)]
pub(crate) struct Peers {
    name: HeaderValue,
    /// Marked as sensitive, so that it is never printed.
    key: ArcSwapOption<HeaderValue>,
    key_file: Option<PathBuf>,
    tls: Option<Arc<ClientConfig>>,
    idle: Mutex<HashMap<ThreadId, Shelf>>,
}

type Shelf = HashMap<String, Vec<SendRequest<Empty<Bytes>>>>;

/// What a node is asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wish<'a> {
    pub(crate) scope: &'a str,
    pub(crate) count: u32,
    pub(crate) patience: Duration,
}

/// What a node gave.
#[derive(Debug)]
pub(crate) struct Gift {
    pub(crate) ids: Vec<Id>,
    pub(crate) node: String,
    pub(crate) region: Option<String>,
    pub(crate) token: u64,
}

/// Why a node gave nothing.
#[derive(Debug)]
pub(crate) enum NoGift {
    /// It cannot be reached, or broke off.
    Unreachable(String),
    /// It answered that it does not.
    Refused(ApiError),
}

/// Why other nodes cannot be asked as the configuration says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeersError(String);

impl Peers {
    pub(crate) fn new(config: &Config) -> Result<Self, PeersError> {
        let key_file = config.peer_key_file.clone();
        let key = ArcSwapOption::from(key_file.as_deref().map(read_key).transpose()?.map(Arc::new));
        let tls = link::client_config(config.peer_ca.as_deref(), config.tls.as_ref())?;
        let name = HeaderValue::from_bytes(config.name.as_bytes());
        let name = name.unwrap_or_else(|_| HeaderValue::from_static("a node"));
        Ok(Self { name, key, key_file, tls, idle: Mutex::default() })
    }

    /// Reads the key again; what is wrong with it changes nothing. `false`: there is none.
    pub(crate) fn reload(&self) -> Result<bool, PeersError> {
        let Some(file) = &self.key_file else { return Ok(false) };
        self.key.store(Some(Arc::new(read_key(file)?)));
        Ok(true)
    }

    /// Asks the node at an address for Ids of a scope.
    pub(crate) async fn ask(&self, base: &str, wish: Wish<'_>) -> Result<Gift, NoGift> {
        let uri: Uri = base.parse().map_err(|error| unreachable(base, &error))?;
        // One that was kept may have been closed by the other side meanwhile.
        while let Some(kept) = self.kept(base) {
            if let Ok(gift) = self.exchange(base, &uri, kept, wish).await {
                return gift;
            }
        }
        let fresh = link::connect(&uri, self.tls.as_ref());
        let fresh = fresh.await.map_err(|error| unreachable(base, &error))?;
        let exchanged = self.exchange(base, &uri, fresh, wish).await;
        exchanged.unwrap_or_else(|error| Err(unreachable(base, &error)))
    }

    /// One request and its answer; the connection is kept if both were whole.
    async fn exchange(
        &self,
        base: &str,
        uri: &Uri,
        mut sender: SendRequest<Empty<Bytes>>,
        wish: Wish<'_>,
    ) -> Result<Result<Gift, NoGift>, hyper::Error> {
        let request = self.request(uri, wish);
        let answer = match request {
            Ok(request) => sender.send_request(request).await?,
            Err(error) => return Ok(Err(unreachable(base, &error))),
        };
        let (head, body) = answer.into_parts();
        let most = PROBLEM_BYTES_MAX.max(wish.count as usize * 8);
        let read = Limited::new(body, most).collect().await;
        let bytes = match read {
            Ok(collected) => collected.to_bytes(),
            Err(error) => return Ok(Err(unreachable(base, &*error))),
        };
        if sender.ready().await.is_ok() {
            self.keep(base, sender);
        }
        Ok(understood(base, &Response::from_parts(head, bytes)))
    }

    fn request(
        &self,
        uri: &Uri,
        wish: Wish<'_>,
    ) -> Result<Request<Empty<Bytes>>, hyper::http::Error> {
        let prefix = uri.path().trim_end_matches('/');
        // The scope's name is declared, so it needs no escapes.
        let path = format!("{prefix}/v1/ids?count={}&scope={}", wish.count, wish.scope);
        let host = uri.authority().map_or("", hyper::http::uri::Authority::as_str);
        let patience = u64::try_from(wish.patience.as_millis()).unwrap_or(u64::MAX);
        let mut request = Request::post(path)
            .header(HOST, host)
            .header(ACCEPT, HeaderValue::from_static("application/octet-stream"))
            .header(FORWARDED, &self.name)
            .header(PATIENCE, patience);
        if let Some(key) = &*self.key.load() {
            request = request.header(AUTHORIZATION, &**key);
        }
        request.body(Empty::new())
    }

    /// A connection of this thread's that is not in use.
    fn kept(&self, base: &str) -> Option<SendRequest<Empty<Bytes>>> {
        let mut idle = self.idle();
        let kept = idle.get_mut(&std::thread::current().id())?.get_mut(base)?;
        while let Some(sender) = kept.pop() {
            if sender.is_ready() {
                return Some(sender);
            }
        }
        None
    }

    fn keep(&self, base: &str, sender: SendRequest<Empty<Bytes>>) {
        let mut idle = self.idle();
        let shelf = idle.entry(std::thread::current().id()).or_default();
        if let Some(kept) = shelf.get_mut(base) {
            if kept.len() < IDLE_MAX {
                kept.push(sender);
            }
            return;
        }
        // Leaders come and go: what leads to others is not kept for ever.
        shelf.values_mut().for_each(|kept| kept.retain(|sender| !sender.is_closed()));
        shelf.retain(|_, kept| !kept.is_empty());
        shelf.insert(base.to_owned(), vec![sender]);
    }

    fn idle(&self) -> MutexGuard<'_, HashMap<ThreadId, Shelf>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn unreachable(base: &str, error: &(dyn std::error::Error + 'static)) -> NoGift {
    let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
    NoGift::Unreachable(format!("{base} cannot be reached: {error}{cause}"))
}

/// Takes an answer apart.
fn understood(base: &str, answer: &Response<Bytes>) -> Result<Gift, NoGift> {
    let nonsense = || NoGift::Unreachable(format!("{base} does not answer as a node does"));
    if answer.status() != hyper::StatusCode::OK {
        let problem: Problem = serde_json::from_slice(answer.body()).map_err(|_| nonsense())?;
        let reason = problem.reason.parse().map_err(|_| nonsense())?;
        let error = ApiError::new(reason, problem.detail);
        let wait = problem.retry_after_ms.map(Duration::from_millis);
        return Err(NoGift::Refused(ApiError { retry_after: wait, ..error }));
    }
    let token = text(answer.headers(), &TOKEN).and_then(|token| token.parse().ok());
    let node = text(answer.headers(), &NODE);
    let (Some(token), Some(node), 0) = (token, node, answer.body().len() % 8) else {
        return Err(nonsense());
    };
    let ids = answer.body().chunks_exact(8).map(|mut bytes| Id::from_u64(bytes.get_u64()));
    Ok(Gift { ids: ids.collect(), node, region: text(answer.headers(), &REGION), token })
}

/// A header's text, whatever its bytes.
pub(crate) fn text(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
}

fn read_key(path: &Path) -> Result<HeaderValue, PeersError> {
    let bad = |why: &dyn fmt::Display| {
        PeersError(format!("the key for other nodes, {}, {why}", path.display()))
    };
    let text = std::fs::read_to_string(path)
        .map_err(|error| bad(&format_args!("cannot be read: {error}")))?;
    let key = text.trim();
    if key.is_empty() || key.len() > KEY_BYTES_MAX {
        return Err(bad(&"is no key: write the key alone into it, as one line"));
    }
    let header = HeaderValue::from_str(&format!("Bearer {key}"));
    let mut header = header.map_err(|_| bad(&"has characters that no key has"))?;
    header.set_sensitive(true);
    Ok(header)
}

impl PeersError {
    fn new(why: impl fmt::Display) -> Self {
        Self(why.to_string())
    }
}

impl fmt::Display for PeersError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for PeersError {}
