//! A server asked over gRPC.
//!
//! There is no nonce here, and none is needed: an answer belongs to one stream of one connection
//! by its number, caches keep no answers of this kind, and one that was cut lacks the status at
//! its end and is an error.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use frazil_id::{Id, Layout, LayoutError};
use frazil_wire::ApiError;
use frazil_wire::proto::id_service_client::IdServiceClient;
use frazil_wire::proto::{Form, InfoRequest, NextRequest, NextResponse, Run};
use hyper_util::rt::TokioIo;
use tonic::metadata::MetadataValue;
use tonic::transport::{Channel, Endpoint as Dialled, Uri};
use tonic::{Request, Status};

use crate::error::Error;
use crate::host::Target;
use crate::link;
use crate::reply;
use crate::server_info::ServerInfo;

const AGENT: &str = concat!("frazil-rust/", env!("CARGO_PKG_VERSION"));

type Stub = IdServiceClient<Channel>;

/// The channel to one server.
#[derive(Debug, Default)]
pub(crate) struct Channels {
    open: Mutex<Option<Stub>>,
}

impl Channels {
    /// Asks for exactly so many IDs, within a time that the server is told.
    pub(crate) async fn ids(
        &self,
        target: &Target,
        count: u32,
        layout: Option<&Layout>,
        within: Duration,
    ) -> Result<Vec<Id>, Error> {
        let request = NextRequest {
            count: Some(i64::from(count)),
            scope: target.scope.clone(),
            form: Form::Runs.into(),
        };
        let request = with_key(target, request, within)?;
        let mut stub = self.stub(target)?;
        let answer = stub.next(request).await.map_err(|status| self.failed(target, status))?;
        let broken = |why: &dyn std::fmt::Display| Error::broken(&target.endpoint.text, why);
        let ids = written_out(answer.into_inner(), count).map_err(|why| broken(&why))?;
        reply::checked(ids, layout).map_err(|answer_error| broken(&answer_error))
    }

    /// Asks what the server is.
    pub(crate) async fn info(
        &self,
        target: &Target,
        within: Duration,
    ) -> Result<ServerInfo, Error> {
        let request = with_key(target, InfoRequest {}, within)?;
        let mut stub = self.stub(target)?;
        let info =
            stub.info(request).await.map_err(|status| self.failed(target, status))?.into_inner();
        let layout = info.layout.parse().map_err(|error: LayoutError| {
            Error::broken(&target.endpoint.text, "its layout is not understood").because(error)
        })?;
        Ok(ServerInfo {
            version: info.version,
            namespace: info.namespace,
            layout,
            node: info.node,
            state: info.state,
            max_count: info.max_count,
        })
    }

    fn stub(&self, target: &Target) -> Result<Stub, Error> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(stub) = &*open {
            return Ok(stub.clone());
        }
        let stub = dial(target)?;
        *open = Some(stub.clone());
        Ok(stub)
    }

    /// What a failed call means. A channel whose runtime is gone is not used again.
    fn failed(&self, target: &Target, status: Status) -> Error {
        let endpoint = target.endpoint.text.clone();
        if let Some(error) = ApiError::from_status(&status) {
            return Error::Refused { endpoint, error };
        }
        *self.open.lock().unwrap_or_else(PoisonError::into_inner) = None;
        Error::unreachable(&target.endpoint.text, status)
    }
}

/// Connects when it is first used, with connections of ours.
fn dial(target: &Target) -> Result<Stub, Error> {
    // TLS is our connector's business; tonic is told of none.
    let uri = format!("http://{}", target.endpoint.authority);
    let dialled = Dialled::from_shared(uri).and_then(|dialled| dialled.user_agent(AGENT));
    let (endpoint, trust) = (target.endpoint.clone(), target.trust.clone());
    let connector = tower::service_fn(move |_: Uri| {
        let (endpoint, trust) = (endpoint.clone(), trust.clone());
        async move { link::open(&endpoint, trust.as_deref()).await.map(TokioIo::new) }
    });
    let channel = dialled.map_err(Error::invalid)?.connect_with_connector_lazy(connector);
    Ok(IdServiceClient::new(channel))
}

fn with_key<T>(target: &Target, message: T, within: Duration) -> Result<Request<T>, Error> {
    let mut request = Request::new(message);
    request.set_timeout(within);
    if let Some(key) = &target.key {
        let mut value =
            MetadataValue::try_from(key.current().header().as_bytes()).map_err(Error::invalid)?;
        value.set_sensitive(true);
        request.metadata_mut().insert("authorization", value);
    }
    Ok(request)
}

/// Every ID of an answer, if they are as many as asked for.
fn written_out(answer: NextResponse, count: u32) -> Result<Vec<Id>, &'static str> {
    const WRONG: &str = "the answer has more or fewer IDs than were asked for";
    let in_runs: u64 = answer.runs.iter().map(|run| u64::from(run.count)).sum();
    if in_runs + answer.ids.len() as u64 != u64::from(count) {
        return Err(WRONG);
    }
    let mut ids: Vec<Id> = Vec::with_capacity(count as usize);
    ids.extend(answer.ids.into_iter().map(Id::from_u64));
    for Run { first, count, stride } in answer.runs {
        for place in 0..u64::from(count) {
            let id = place.checked_mul(stride).and_then(|offset| first.checked_add(offset));
            ids.push(Id::from_u64(id.ok_or("a run of the answer goes beyond 64 bits")?));
        }
    }
    Ok(ids)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_written_out_exactly_or_refused() {
        let answer = |runs: &[(u64, u32, u64)]| NextResponse {
            runs: runs
                .iter()
                .map(|(first, count, stride)| Run { first: *first, count: *count, stride: *stride })
                .collect(),
            ..NextResponse::default()
        };
        let ids = written_out(answer(&[(5, 2, 1), (100, 3, 16)]), 5).unwrap();
        assert_eq!(ids, [5, 6, 100, 116, 132].map(Id::from_u64));
        assert!(written_out(answer(&[(5, 2, 1)]), 3).is_err());
        assert!(written_out(answer(&[(5, u32::MAX, 1)]), 3).is_err());
        assert!(written_out(answer(&[(u64::MAX, 2, 1)]), 2).is_err());
        assert!(written_out(answer(&[(1, 3, u64::MAX)]), 3).is_err());
        let still = written_out(answer(&[(7, 2, 0)]), 2).unwrap();
        assert!(reply::checked(still, None).is_err(), "the same ID twice");
    }
}
