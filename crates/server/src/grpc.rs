//! gRPC: translates requests and answers, decides nothing.

mod deadline;
mod ids;
mod incoming;
mod stream;

use std::sync::Arc;
use std::time::Duration;

use frazil_wire::proto::DESCRIPTORS;
use frazil_wire::proto::id_service_server::{IdServiceServer, SERVICE_NAME};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tonic::transport::Server;
use tonic_health::ServingStatus;
use tonic_health::server::HealthReporter;

use self::ids::Ids;
use crate::app::Shared;
use crate::condition::Condition;

/// Calls of one connection at a time: a client that wants more opens another connection.
const STREAMS_MAX: u32 = 256;
/// Connections end after this, so that clients spread over nodes that were added.
const CONNECTION_AGE: Duration = Duration::from_mins(30);
/// What is in flight then has so long to finish.
const CONNECTION_GRACE: Duration = Duration::from_mins(1);
/// A client that is gone without a word is noticed after these two.
const KEEPALIVE: Duration = Duration::from_secs(30);
const KEEPALIVE_ANSWER: Duration = Duration::from_secs(10);
/// Bytes of a request: the largest holds Ids to decode.
const REQUEST_BYTES_MAX: usize = 1 << 20;

/// Serves gRPC until the server closes and what is in flight is finished.
pub(crate) async fn serve(
    listener: TcpListener,
    shared: Arc<Shared>,
    condition: watch::Receiver<Condition>,
) {
    let (reporter, health) = tonic_health::server::health_reporter();
    let ids =
        IdServiceServer::new(Ids::new(shared.clone())).max_decoding_message_size(REQUEST_BYTES_MAX);
    let reflection = || {
        tonic_reflection::server::Builder::configure()
            .register_encoded_file_descriptor_set(DESCRIPTORS)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
    };
    let (Ok(current), Ok(older)) = (reflection().build_v1(), reflection().build_v1alpha()) else {
        tracing::error!("gRPC is not served: its descriptors cannot be read");
        return;
    };
    let most = shared.issuer.limits().max_connections;
    let incoming = incoming::incoming(listener, most, &shared.going);
    let serving = Server::builder()
        .max_concurrent_streams(STREAMS_MAX)
        .max_connection_age(CONNECTION_AGE)
        .max_connection_age_grace(CONNECTION_GRACE)
        .http2_keepalive_interval(Some(KEEPALIVE))
        .http2_keepalive_timeout(Some(KEEPALIVE_ANSWER))
        .add_service(ids)
        .add_service(health)
        .add_service(current)
        .add_service(older)
        .serve_with_incoming_shutdown(incoming, shared.going.closing.clone().cancelled_owned());
    // Counted among the connections, so that those in flight are waited for.
    let tracked = shared.going.connections.track_future(serving);
    tokio::select! {
        served = tracked => {
            if let Err(error) = served {
                tracing::error!(%error, "gRPC is not served any more");
            }
        }
        () = report(reporter, condition, &shared) => {}
    }
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
            () = shared.going.closing.cancelled() => {
                // Who watches was told, and must not hold the end up.
                for service in ["", SERVICE_NAME] {
                    reporter.clear_service_status(service).await;
                }
                return std::future::pending().await;
            }
        }
    }
}
