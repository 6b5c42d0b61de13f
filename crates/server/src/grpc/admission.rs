//! Admission: whose call it is, whether that one may make it, and whether there is room for it is
//! decided by the head of a call, before a byte of its message is read.

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};

use frazil::coord::internal::time::boot_time;
use frazil_wire::proto::id_service_server::{IdServiceServer, SERVICE_NAME};
use frazil_wire::{ApiError, Reason};
use hyper::header::AUTHORIZATION;
use hyper::{Request, Response};
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::{BoxFuture, Service};
use tonic::server::NamedService;

use super::Rpc;
use super::answer::{Answer, Watch};
use super::ids::Ids;
use super::incoming::Connection;
use super::message::{Bounds, Message, Unfinished, Until};
use crate::app::Shared;
use crate::metrics::Protocol;
use crate::net::request_id::RequestId;
use crate::policy::access::{Caller, bearer};

/// Bytes of any message but that of Decode: the longest one names a scope.
pub(super) const MESSAGE_BYTES_MAX: usize = 1024;
/// IDs that one call takes apart: what is answered is kept until the client reads it.
pub(super) const DECODE_IDS_MAX: usize = 10_000;
/// Bytes of a message of Decode: so many IDs, however they are written, and a layout.
pub(super) const DECODE_BYTES_MAX: usize = 128 * 1024;

/// A service whose calls are admitted first.
#[derive(Clone, Debug)]
pub(super) struct Admission<S> {
    shared: Arc<Shared>,
    unfinished: Arc<Unfinished>,
    inner: S,
}

impl<S> Admission<S> {
    /// Services that are given the same `unfinished` share it.
    pub(super) const fn new(shared: Arc<Shared>, unfinished: Arc<Unfinished>, inner: S) -> Self {
        Self { shared, unfinished, inner }
    }
}

impl<S: NamedService> NamedService for Admission<S> {
    const NAME: &'static str = S::NAME;
}

impl<S> Service<Request<Body>> for Admission<S>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>,
    S::Future: Send + 'static,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<Response<Body>, Infallible>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let call = Call::of(request.uri().path());
        let admitted = self.admit(call, &mut request);
        if let (Err(_), _) | (_, Call::Health | Call::Other) = (&admitted, call)
            && let Some(connection) = request.extensions().get::<Connection>()
        {
            connection.client_state.decide();
        }
        if let Err(error) = admitted {
            let refused = refused(&self.shared, call, error);
            return Box::pin(std::future::ready(Ok(refused)));
        }
        let (shared, bounds) = (self.shared.clone(), self.bounds(call));
        let watch = self.watch(call, &request);
        let key = request.extensions().get::<Caller>().map_or(0, Caller::number);
        let request = request.map(|body| Body::new(Message::new(body, bounds)));
        let calling = self.inner.call(request);
        Box::pin(async move {
            // Whoever asks how the node is doing is always told.
            let Call::Own(_) = call else { return calling.await };
            match shared.in_flight.enter(shared.issuer.limits().max_in_flight, key) {
                Ok(_answering) => {
                    let answer = calling.await?;
                    Ok(match watch {
                        Some(watch) => answer.map(|body| Body::new(Answer::new(body, watch))),
                        None => answer,
                    })
                }
                Err(error) => Ok(refused(&shared, call, error)),
            }
        })
    }
}

impl<S> Admission<S> {
    /// Tells the service where the call comes from and whose it is, if that one may make it.
    fn admit(&self, call: Call, request: &mut Request<Body>) -> Result<(), ApiError> {
        let connection = request.extensions().get::<Connection>();
        match call {
            Call::Own(rpc) => {
                // Never without it: every connection that is served brings one.
                let connection = connection
                    .ok_or_else(|| ApiError::new(Reason::Internal, "a call has no connection"))?;
                let (headers, remote) = (request.headers(), &connection.remote);
                let id = RequestId::of(headers, remote.connection, boot_time());
                let remote = remote.with_request(id).forwarded(headers, &self.shared.proxies)?;
                let shown = headers.get(AUTHORIZATION);
                let shown = shown.and_then(|shown| bearer(shown.as_bytes()));
                let caller = self.shared.authenticator.admit(&remote, shown, rpc.permission())?;
                connection.client_state.admit();
                request.extensions_mut().insert(remote);
                request.extensions_mut().insert(caller);
            }
            Call::Health => {
                if let Some(connection) = connection {
                    connection.client_state.probe();
                }
            }
            Call::Other => {}
        }
        Ok(())
    }

    /// What looks after its answer. Streams wait for their readers by themselves.
    fn watch(&self, call: Call, request: &Request<Body>) -> Option<Watch> {
        let Call::Own(Rpc::Next | Rpc::Decode) = call else { return None };
        let client_state = request.extensions().get::<Connection>()?.client_state.clone();
        let limit = self.shared.issuer.limits().write_timeout;
        Some(Watch { client_state, limit, tasks: self.shared.shutdown.connections.clone() })
    }

    /// What its message may take.
    fn bounds(&self, call: Call) -> Bounds {
        let limit = self.shared.issuer.limits().body_timeout;
        let until = match call {
            // It waits for its first message by itself.
            Call::Own(Rpc::Stream) => None,
            Call::Own(_) | Call::Health => Some(Until::End),
            Call::Other => Some(Until::Beginning),
        };
        let unfinished = matches!(call, Call::Own(Rpc::Decode)).then(|| self.unfinished.clone());
        let most = most(call, self.shared.issuer.limits().max_body_bytes);
        Bounds { limit, until, most, unfinished }
    }
}

fn refused(shared: &Shared, call: Call, error: ApiError) -> Response<Body> {
    if let Call::Own(rpc) = call {
        shared.metrics.requests.failed(Protocol::Grpc, rpc.method(), error.reason);
    }
    Status::from(error).into_http()
}

/// Bytes of one message of a call.
fn most(call: Call, max_body_bytes: usize) -> usize {
    match call {
        Call::Own(Rpc::Decode) => DECODE_BYTES_MAX.min(max_body_bytes),
        Call::Own(_) => MESSAGE_BYTES_MAX.min(max_body_bytes),
        Call::Health | Call::Other => MESSAGE_BYTES_MAX,
    }
}

/// What a path calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Call {
    /// A call of the service for IDs.
    Own(Rpc),
    /// One that asks how the node is doing.
    Health,
    /// Reflection, and what does not exist.
    Other,
}

impl Call {
    fn of(path: &str) -> Self {
        let Some((service, name)) = path.strip_prefix('/').and_then(|path| path.split_once('/'))
        else {
            return Self::Other;
        };
        let rpc = Rpc::ALL.into_iter().find(|rpc| rpc.name() == name);
        match (service, rpc) {
            (SERVICE_NAME, Some(rpc)) => Self::Own(rpc),
            ("grpc.health.v1.Health", _) => Self::Health,
            _ => Self::Other,
        }
    }
}

/// The service for IDs, with a limit of its own for the messages of Decode.
#[derive(Clone, Debug)]
pub(super) struct IdServices {
    short: IdServiceServer<Ids>,
    decode: IdServiceServer<Ids>,
}

impl IdServices {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        let max_body_bytes = shared.issuer.limits().max_body_bytes;
        let ids = Arc::new(Ids::new(shared));
        let server =
            |bytes| IdServiceServer::from_arc(ids.clone()).max_decoding_message_size(bytes);
        let bytes = |rpc| most(Call::Own(rpc), max_body_bytes);
        Self { short: server(bytes(Rpc::Next)), decode: server(bytes(Rpc::Decode)) }
    }
}

impl NamedService for IdServices {
    const NAME: &'static str = SERVICE_NAME;
}

impl Service<Request<Body>> for IdServices {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<Response<Body>, Infallible>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        match Call::of(request.uri().path()) {
            Call::Own(Rpc::Decode) => self.decode.call(request),
            _ => self.short.call(request),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_say_what_is_called() {
        for (path, call) in [
            ("/frazil.v1.IdService/Next", Call::Own(Rpc::Next)),
            ("/frazil.v1.IdService/Decode", Call::Own(Rpc::Decode)),
            ("/frazil.v1.IdService/next", Call::Other),
            ("/frazil.v1.IdService/", Call::Other),
            ("/other.IdService/Next", Call::Other),
            ("/grpc.health.v1.Health/Check", Call::Health),
            ("/", Call::Other),
            ("", Call::Other),
        ] {
            assert_eq!(Call::of(path), call, "{path}");
        }
    }
}
