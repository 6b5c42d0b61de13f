//! The gRPC service `IdService`.

use std::sync::Arc;

use frazil::Batch;
use frazil::coord::internal::time::boot_time;
use frazil_id::{Id, Layout};
use frazil_wire::proto::id_service_server::IdService;
use frazil_wire::proto::{
    DecodeRequest, DecodeResponse, Decoded, Form, IdBatch, InfoRequest, InfoResponse, Lane,
    Metadata, NextRequest, NextResponse, Run, StreamRequest,
};
use frazil_wire::{ApiError, Reason};
use tokio_stream::wrappers::ReceiverStream;
use tonic::codegen::http::Extensions;
use tonic::{Request, Response, Status, Streaming};

use super::admission::DECODE_IDS_MAX;
use super::{Rpc, deadline, stream};
use crate::app::Shared;
use crate::cluster::scopes::Origin;
use crate::metrics::{Method, Protocol};
use crate::net::listener::Remote;
use crate::node::info;
use crate::policy::access::Caller;
use crate::policy::admission::{IdsRequest, IssuedIds};
use crate::policy::decode_cost::{charge, check_count};
use crate::policy::queue::Count;

/// Answers gRPC calls.
#[derive(Debug)]
pub(super) struct Ids {
    shared: Arc<Shared>,
}

impl Ids {
    pub(super) const fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    async fn issue(&self, request: Request<NextRequest>) -> Result<NextResponse, ApiError> {
        let caller = caller(request.extensions())?;
        let (shared, patience) = (&self.shared, deadline::patience(request.metadata()));
        let remote = remote(&request)?;
        let request = request.into_inner();
        let form = form(request.form)?;
        let wanted = request.count.unwrap_or(1);
        let count = u32::try_from(wanted).map_err(|_| {
            let detail = format_args!("{wanted} IDs were asked for: see max_count of Info");
            ApiError::new(Reason::CountOutOfRange, detail)
        })?;
        let (count, origin) = (Count::Exactly(count), Origin::Client);
        let ask = IdsRequest {
            count,
            is_run: false,
            scope: &request.scope,
            patience,
            waits_for_quota: false,
            origin,
            protocol: Protocol::Grpc,
        };
        let issued = shared.issue(&remote, &caller, ask).await?;
        let IdBatch { ids, runs, metadata } = message(&shared.name, &issued, form);
        Ok(NextResponse { ids, runs, metadata })
    }

    fn decode_all(&self, request: &Request<DecodeRequest>) -> Result<DecodeResponse, ApiError> {
        let caller = caller(request.extensions())?;
        let request = request.get_ref();
        let most = (self.shared.issuer.limits().max_count as usize).min(DECODE_IDS_MAX);
        check_count(request.ids.len(), most)?;
        charge(&caller, request.ids.len())?;
        let layout = match request.layout.as_str() {
            "" => *self.shared.issuer.layout(),
            name => name.parse().map_err(|error| ApiError::new(Reason::UnknownLayout, error))?,
        };
        let decoded =
            request.ids.iter().map(|id| decode(*id, &layout)).collect::<Result<_, _>>()?;
        Ok(DecodeResponse { decoded })
    }

    /// Counts a call by its outcome.
    fn counted<T>(
        &self,
        rpc: Rpc,
        began: std::time::Duration,
        outcome: Result<T, ApiError>,
    ) -> Result<Response<T>, Status> {
        let (requests, method) = (&self.shared.metrics.requests, rpc.method());
        let took = boot_time().saturating_sub(began);
        match outcome {
            Ok(answer) => {
                requests.done(Protocol::Grpc, method, took);
                Ok(Response::new(answer))
            }
            Err(error) => {
                requests.took(Protocol::Grpc, took);
                requests.failed(Protocol::Grpc, method, error.reason);
                Err(error.into())
            }
        }
    }
}

#[tonic::async_trait]
impl IdService for Ids {
    type StreamStream = ReceiverStream<Result<IdBatch, Status>>;

    async fn next(&self, request: Request<NextRequest>) -> Result<Response<NextResponse>, Status> {
        let began = boot_time();
        self.counted(Rpc::Next, began, self.issue(request).await)
    }

    async fn stream(
        &self,
        request: Request<Streaming<StreamRequest>>,
    ) -> Result<Response<Self::StreamStream>, Status> {
        let begun = match caller(request.extensions()) {
            Ok(caller) => stream::begin(self.shared.clone(), caller, request).await,
            Err(error) => Err(error),
        };
        match begun {
            // Counted when it ends.
            Ok(stream) => Ok(Response::new(stream)),
            Err(error) => {
                self.shared.metrics.requests.failed(Protocol::Grpc, Method::Stream, error.reason);
                Err(error.into())
            }
        }
    }

    async fn decode(
        &self,
        request: Request<DecodeRequest>,
    ) -> Result<Response<DecodeResponse>, Status> {
        let began = boot_time();
        self.counted(Rpc::Decode, began, self.decode_all(&request))
    }

    async fn info(&self, request: Request<InfoRequest>) -> Result<Response<InfoResponse>, Status> {
        let began = boot_time();
        let admitted = caller(request.extensions()).map(|_| info(&self.shared));
        self.counted(Rpc::Info, began, admitted)
    }
}

/// Where a call comes from: admission has left it with the call.
pub(super) fn remote<T>(request: &Request<T>) -> Result<Remote, ApiError> {
    let remote = request.extensions().get::<Remote>().cloned();
    remote.ok_or_else(|| ApiError::new(Reason::Internal, "the connection of the call is not known"))
}

/// The caller, from there too.
fn caller(extensions: &Extensions) -> Result<Caller, ApiError> {
    let caller = extensions.get::<Caller>().cloned();
    // Never without it: the services are served behind admission alone.
    caller.ok_or_else(|| ApiError::new(Reason::Internal, "the call was not admitted"))
}

pub(super) fn form(number: i32) -> Result<Form, ApiError> {
    Form::try_from(number).map_err(|_| {
        ApiError::new(Reason::InvalidArgument, format_args!("{number} is no form of IDs"))
    })
}

/// IDs in the form that was asked for.
pub(super) fn message(own: &str, issued: &IssuedIds, form: Form) -> IdBatch {
    let node = issued.issuing_node.as_ref().map_or(own, |at| at.node.as_str());
    let metadata = Metadata { node: node.to_owned(), worker: issued.worker, token: issued.token.0 };
    let (ids, runs) = match form {
        Form::Runs => (Vec::new(), runs(&issued.batch)),
        _ => (issued.batch.iter().map(Id::to_u64).collect(), Vec::new()),
    };
    IdBatch { ids, runs, metadata: Some(metadata) }
}

fn runs(batch: &Batch) -> Vec<Run> {
    let run = |run: frazil_id::Run| Run {
        first: run.first.to_u64(),
        count: u32::try_from(run.count).unwrap_or(u32::MAX),
        stride: run.stride,
    };
    batch.runs().map(run).collect()
}

fn decode(id: u64, layout: &Layout) -> Result<Decoded, ApiError> {
    let parts = Id::from_u64(id)
        .parts(layout)
        .map_err(|error| ApiError::new(Reason::MalformedId, format_args!("{id}: {error}")))?;
    let named = layout.has_named_parts().then(|| layout.split_worker(parts.worker));
    let named = named.into_iter().flatten().map(|(name, value)| (name.to_owned(), value));
    Ok(Decoded {
        id,
        unix_ms: layout.unix_ms(parts.tick).cast_signed(),
        tick: parts.tick,
        worker: parts.worker,
        sequence: parts.sequence,
        parts: named.collect(),
    })
}

fn info(shared: &Shared) -> InfoResponse {
    let info = info::info(shared);
    let lanes = shared.issuer.node().map(|node| node.info().lanes).unwrap_or_default();
    let lane = |lane: &frazil::LaneInfo| {
        let grant = lane.status.grant;
        Lane {
            state: lane.status.state.word().to_owned(),
            worker: grant.map(|grant| grant.worker),
            token: grant.map(|grant| grant.token.0),
            horizon_ms: grant.and_then(|grant| i64::try_from(grant.horizon).ok()),
        }
    };
    InfoResponse {
        version: info.version,
        namespace: info.namespace,
        layout: info.layout.text,
        node: info.node.name,
        state: info.node.state,
        max_count: info.limits.max_count,
        issuable_seconds: info.node.issuable_seconds,
        lanes: lanes.iter().map(lane).collect(),
    }
}
