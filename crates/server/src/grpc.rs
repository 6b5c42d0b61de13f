//! gRPC: translates requests and answers, decides nothing.

mod admission;
mod answer;
mod deadline;
mod greeting;
mod ids;
mod incoming;
mod message;
mod stream;
mod unauthenticated;

use std::sync::Arc;
use std::time::Duration;

use frazil_wire::proto::DESCRIPTORS;
use frazil_wire::proto::id_service_server::SERVICE_NAME;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tonic::transport::Server;
use tonic_health::ServingStatus;
use tonic_health::server::HealthReporter;

use self::admission::{Admission, IdServices, MESSAGE_BYTES_MAX};
use self::message::Unfinished;
use crate::app::Shared;
use crate::config::Limits;
use crate::metrics::Method;
use crate::node::condition::Condition;
use crate::policy::access::Permission;

/// Connections end after this, so that clients spread over nodes that were added.
const CONNECTION_AGE: Duration = Duration::from_mins(30);
/// What is in flight then has so long to finish.
const CONNECTION_GRACE: Duration = Duration::from_mins(1);
/// A client that is gone without a word is noticed after these two.
const KEEPALIVE: Duration = Duration::from_secs(30);
const KEEPALIVE_ANSWER: Duration = Duration::from_secs(10);
/// Streams that the server reset because of the client's faults; more end the connection.
const OWN_RESETS_MAX: usize = 1024;
/// Bytes that a client may send before they are taken, of one call and of all calls of a connection:
/// messages are short, and what is sent without a key is not taken at all.
const STREAM_WINDOW: u32 = 16 * 1024;
const CONNECTION_WINDOW: u32 = 64 * 1024;
/// Bytes of a frame: the least that HTTP/2 allows.
const FRAME_BYTES_MAX: u32 = 16 * 1024;

/// Every call, and what it needs.
pub(crate) fn table() -> impl Iterator<Item = (String, Permission)> {
    let own = Rpc::ALL
        .into_iter()
        .map(|rpc| (format!("{SERVICE_NAME}/{}", rpc.name()), rpc.permission()));
    let open = [
        "grpc.health.v1.Health/Check",
        "grpc.health.v1.Health/Watch",
        "grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
        "grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
    ];
    own.chain(open.map(|name| (name.to_owned(), Permission::Nothing)))
}

/// The calls of the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rpc {
    Next,
    Stream,
    Decode,
    Info,
}

impl Rpc {
    const ALL: [Self; 4] = [Self::Next, Self::Stream, Self::Decode, Self::Info];

    const fn name(self) -> &'static str {
        match self {
            Self::Next => "Next",
            Self::Stream => "Stream",
            Self::Decode => "Decode",
            Self::Info => "Info",
        }
    }

    const fn permission(self) -> Permission {
        match self {
            Self::Next | Self::Stream => Permission::Ids,
            Self::Decode | Self::Info => Permission::AnyKey,
        }
    }

    /// What it is called in the metrics.
    const fn method(self) -> Method {
        match self {
            Self::Next => Method::Next,
            Self::Stream => Method::Stream,
            Self::Decode => Method::Decode,
            Self::Info => Method::Info,
        }
    }
}

/// Serves gRPC until the server closes and what is in flight is finished.
pub(crate) async fn serve(
    listener: TcpListener,
    shared: Arc<Shared>,
    condition: watch::Receiver<Condition>,
) {
    let (reporter, health) = tonic_health::server::health_reporter();
    let limits = *shared.issuer.limits();
    let unfinished = Arc::new(Unfinished::default());
    let reflection = || {
        tonic_reflection::server::Builder::configure()
            .register_encoded_file_descriptor_set(DESCRIPTORS)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
    };
    let (Ok(current), Ok(older)) = (reflection().build_v1(), reflection().build_v1alpha()) else {
        tracing::error!("gRPC is not served: its descriptors cannot be read");
        return;
    };
    let incoming = incoming::incoming(listener, shared.clone());
    let ids = Admission::new(shared.clone(), unfinished.clone(), IdServices::new(shared.clone()));
    // These need no key, and are bounded all the same.
    let health = health.max_decoding_message_size(MESSAGE_BYTES_MAX);
    let health = Admission::new(shared.clone(), unfinished.clone(), health);
    let current = current.max_decoding_message_size(MESSAGE_BYTES_MAX);
    let current = Admission::new(shared.clone(), unfinished.clone(), current);
    let older = older.max_decoding_message_size(MESSAGE_BYTES_MAX);
    let older = Admission::new(shared.clone(), unfinished, older);
    let serving = Server::builder()
        .max_concurrent_streams(limits.max_streams)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .http2_max_pending_accept_reset_streams(Some(limits.max_resets))
        .http2_max_local_error_reset_streams(Some(OWN_RESETS_MAX))
        .http2_max_header_list_size(head_bytes_max(&limits))
        .max_frame_size(FRAME_BYTES_MAX)
        .max_connection_age(CONNECTION_AGE)
        .max_connection_age_grace(CONNECTION_GRACE)
        .http2_keepalive_interval(Some(KEEPALIVE))
        .http2_keepalive_timeout(Some(KEEPALIVE_ANSWER))
        .add_service(ids)
        .add_service(health)
        .add_service(current)
        .add_service(older)
        .serve_with_incoming_shutdown(incoming, shared.shutdown.closing.clone().cancelled_owned());
    // Counted among the connections, so that those in flight are waited for.
    let tracked = shared.shutdown.connections.track_future(serving);
    tokio::select! {
        served = tracked => {
            if let Err(error) = served {
                tracing::error!(%error, "gRPC is not served any more");
            }
        }
        () = report(reporter, condition, &shared) => {}
    }
}

fn head_bytes_max(limits: &Limits) -> u32 {
    u32::try_from(limits.max_head_bytes).unwrap_or(u32::MAX)
}

/// Tells the health service how the node is doing. Never ends.
async fn report(
    mut reporter: HealthReporter,
    mut condition: watch::Receiver<Condition>,
    shared: &Shared,
) {
    loop {
        let is_ready = condition.borrow_and_update().state.is_ready();
        let status = if is_ready { ServingStatus::Serving } else { ServingStatus::NotServing };
        for service in ["", SERVICE_NAME] {
            reporter.set_service_status(service, status).await;
        }
        tokio::select! {
            Ok(()) = condition.changed() => {}
            () = shared.shutdown.closing.cancelled() => {
                // Who watches was told, and must not hold the end up.
                for service in ["", SERVICE_NAME] {
                    reporter.clear_service_status(service).await;
                }
                return std::future::pending().await;
            }
        }
    }
}
