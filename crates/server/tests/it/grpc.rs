//! gRPC as clients see it.

use std::collections::BTreeSet;
use std::time::Duration;

use frazil_server::LaneCount;
use frazil_wire::proto::id_service_client::IdServiceClient;
use frazil_wire::proto::{
    DecodeRequest, Form, IdBatch, InfoRequest, NextRequest, Run, StreamRequest,
};
use tokio::sync::mpsc;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Channel;
use tonic::{Code, Request, Status};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use tonic_types::StatusExt;

use crate::site::Site;

async fn channel(site: &Site) -> Channel {
    let address = format!("http://{}", site.addrs.grpc.unwrap());
    Channel::from_shared(address).unwrap().connect().await.unwrap()
}

async fn client(site: &Site) -> IdServiceClient<Channel> {
    IdServiceClient::new(channel(site).await)
}

fn next(count: i64) -> NextRequest {
    NextRequest { count: Some(count), ..NextRequest::default() }
}

fn reason(status: &Status) -> String {
    status.get_error_details().error_info().expect("every error has a reason").reason.clone()
}

fn expand(runs: &[Run]) -> Vec<u64> {
    runs.iter()
        .flat_map(|run| (0..u64::from(run.count)).map(|n| run.first + n * run.stride))
        .collect()
}

#[tokio::test]
async fn ids_come_one_by_one_or_as_runs() {
    let site = Site::start().await;
    let mut client = client(&site).await;
    let one = client.next(NextRequest::default()).await.unwrap().into_inner();
    assert_eq!((one.ids.len(), one.runs.len()), (1, 0));
    assert_eq!(one.metadata.as_ref().unwrap().node, "tested");
    let many = client.next(next(50_000)).await.unwrap().into_inner();
    let runs = NextRequest { form: Form::Runs.into(), ..next(50_000) };
    let runs = client.next(runs).await.unwrap().into_inner();
    assert!(runs.ids.is_empty() && runs.runs.len() < 100, "{}", runs.runs.len());
    let all: Vec<u64> = one.ids.into_iter().chain(many.ids).chain(expand(&runs.runs)).collect();
    assert_eq!(all.len(), 100_001);
    assert!(all.is_sorted_by(|one, other| one < other));
    site.stop().await.unwrap();
}

#[tokio::test]
async fn errors_carry_their_reason() {
    let site = Site::start().await;
    let mut client = client(&site).await;
    for count in [0, -1, 100_001, i64::MAX, i64::MIN] {
        let status = client.next(next(count)).await.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument);
        assert_eq!(reason(&status), "COUNT_OUT_OF_RANGE");
    }
    let scoped = NextRequest { scope: "nobody".into(), ..NextRequest::default() };
    let status = client.next(scoped).await.unwrap_err();
    assert_eq!((status.code(), reason(&status).as_str()), (Code::NotFound, "NOT_FOUND"));
    let formed = NextRequest { form: 7, ..NextRequest::default() };
    let status = client.next(formed).await.unwrap_err();
    assert_eq!(reason(&status), "INVALID_ARGUMENT");
    let request = DecodeRequest { ids: vec![u64::MAX], layout: "js53".into() };
    assert_eq!(reason(&client.decode(request).await.unwrap_err()), "MALFORMED_ID");
    let request = DecodeRequest { ids: vec![1], layout: "nonsense".into() };
    assert_eq!(reason(&client.decode(request).await.unwrap_err()), "UNKNOWN_LAYOUT");
    assert!(site.issued("grpc").await < 1.0, "a bad request took an ID");
    site.stop().await.unwrap();
}

#[tokio::test]
async fn decode_and_info_answer() {
    let site = Site::start().await;
    let mut client = client(&site).await;
    let request = DecodeRequest { ids: vec![175_928_847_299_117_063], layout: "discord".into() };
    let decoded = client.decode(request).await.unwrap().into_inner().decoded.remove(0);
    assert_eq!((decoded.unix_ms, decoded.sequence), (1_462_015_105_796, 7));
    assert_eq!(decoded.parts["worker"], 1);
    let info = client.info(InfoRequest {}).await.unwrap().into_inner();
    assert_eq!((info.state.as_str(), info.max_count, info.lanes.len()), ("ready", 100_000, 1));
    assert!(info.lanes[0].worker.is_some() && info.issuable_seconds > 20.0);
    site.stop().await.unwrap();
}

/// Collects what a stream sends for some grants, the last of which ends the granting.
async fn streamed(site: &Site, form: Form, credits: &[i64]) -> Result<Vec<u64>, Status> {
    let (sender, receiver) = mpsc::channel(1);
    let credits = credits.to_vec();
    let granting = tokio::spawn(async move {
        for credit in credits {
            let request = StreamRequest { credit, form: form.into(), ..StreamRequest::default() };
            if sender.send(request).await.is_err() {
                return;
            }
        }
    });
    let mut batches = client(site).await.stream(ReceiverStream::new(receiver)).await?.into_inner();
    let mut ids = Vec::new();
    while let Some(batch) = batches.next().await {
        let IdBatch { ids: some, runs, .. } = batch?;
        ids.extend(some);
        ids.extend(expand(&runs));
    }
    granting.await.unwrap();
    Ok(ids)
}

#[tokio::test]
async fn a_stream_sends_exactly_what_it_was_granted() {
    let site = Site::start_with(|config| config.lanes = LaneCount::Fixed(2)).await;
    let (one, other) = tokio::join!(
        streamed(&site, Form::Ids, &[1, 10_000, 5, 0, 90_000]),
        streamed(&site, Form::Runs, &[150_000, 50_000]),
    );
    let (one, other) = (one.unwrap(), other.unwrap());
    assert_eq!((one.len(), other.len()), (100_006, 200_000));
    let all: BTreeSet<u64> = one.into_iter().chain(other).collect();
    assert_eq!(all.len(), 300_006);
    site.stop().await.unwrap();
}

#[tokio::test]
async fn absurd_credit_ends_the_stream_and_nobody_else() {
    let site = Site::start().await;
    for credits in [[i64::MAX, 0], [-1, 0], [1, i64::MAX]] {
        let status = streamed(&site, Form::Runs, &credits).await.unwrap_err();
        assert_eq!(
            (status.code(), reason(&status).as_str()),
            (Code::InvalidArgument, "COUNT_OUT_OF_RANGE")
        );
    }
    assert_eq!(client(&site).await.next(next(3)).await.unwrap().into_inner().ids.len(), 3);
    site.stop().await.unwrap();
}

#[tokio::test]
async fn a_stream_without_credit_or_reader_holds_nobody_up() {
    let site = Site::start().await;
    // Granted a lot, and never read.
    let (sender, receiver) = mpsc::channel(1);
    sender.send(StreamRequest { credit: 1_000_000_000, ..Default::default() }).await.unwrap();
    let mut greedy_client = client(&site).await;
    let greedy = greedy_client.stream(ReceiverStream::new(receiver)).await.unwrap();
    // Open, and never granted anything.
    let (idle_sender, receiver) = mpsc::channel::<StreamRequest>(1);
    idle_sender.send(StreamRequest::default()).await.unwrap();
    let mut idle_client = client(&site).await;
    let mut idle = idle_client.stream(ReceiverStream::new(receiver)).await.unwrap().into_inner();
    let taken = tokio::time::timeout(Duration::from_secs(20), async {
        for _ in 0..100 {
            client(&site).await.next(next(100)).await.unwrap();
        }
    });
    taken.await.expect("others get their IDs");
    // At the end both are told, within the time that requests in flight have.
    let stopping = tokio::spawn(site.stop());
    let told = idle.next().await.unwrap().unwrap_err();
    assert_eq!((told.code(), reason(&told).as_str()), (Code::Unavailable, "DRAINING"));
    drop((greedy, sender, idle_sender));
    stopping.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_deadline_is_honoured() {
    // One ID a second: the second request must wait.
    let layout = "time:40 worker:10 sequence:1 @2024-01-01T00:00:00Z tick:10s".parse().unwrap();
    let site = Site::start_with(|config| {
        config.node = config.node.clone().layout(layout).options(frazil::id::Options::default());
    })
    .await;
    let mut client = client(&site).await;
    let status = loop {
        let mut request = Request::new(next(1));
        request.set_timeout(Duration::from_millis(200));
        if let Err(status) = client.next(request).await {
            break status;
        }
    };
    assert!(matches!(status.code(), Code::DeadlineExceeded | Code::Cancelled), "{status:?}");
    site.stop().await.unwrap();
}

#[tokio::test]
async fn health_follows_the_node() {
    let mut site = Site::start_with(|config| {
        config.drain_delay = Duration::from_secs(1);
        config.drain_timeout = Duration::from_secs(3600);
    })
    .await;
    let mut health = HealthClient::new(channel(&site).await);
    for service in ["", "frazil.v1.IdService"] {
        let request = HealthCheckRequest { service: service.to_owned() };
        let answer = health.check(request).await.unwrap().into_inner();
        assert_eq!(answer.status(), ServingStatus::Serving);
    }
    let request = HealthCheckRequest { service: String::new() };
    let mut watched = health.watch(request).await.unwrap().into_inner();
    assert_eq!(watched.next().await.unwrap().unwrap().status(), ServingStatus::Serving);
    site.ask_to_stop();
    assert_eq!(watched.next().await.unwrap().unwrap().status(), ServingStatus::NotServing);
    // Not ready any more, and still issuing: balancers need a moment.
    assert_eq!(client(&site).await.next(next(2)).await.unwrap().into_inner().ids.len(), 2);
    // Who watches is let go, and does not hold the end up.
    let ended = tokio::time::timeout(Duration::from_secs(30), site.ended()).await;
    ended.expect("it ends").unwrap();
    drop((watched, health));
}

#[tokio::test]
async fn a_message_that_is_too_long_is_refused_with_the_reason_that_http_gives() {
    let site = Site::start().await;
    let mut client = client(&site).await;
    let scope = "x".repeat(2_000);
    let next = NextRequest { scope: scope.clone(), ..Default::default() };
    let refused = client.next(next).await.unwrap_err();
    assert_eq!((refused.code(), reason(&refused).as_str()), (Code::InvalidArgument, "TOO_LARGE"));
    assert!(refused.message().ends_with("and at most 1024 are read"), "{refused:?}");
    // The first message of a stream, and a later one.
    let long = StreamRequest { scope, ..Default::default() };
    let first = client.stream(tokio_stream::once(long.clone())).await.unwrap_err();
    assert_eq!(reason(&first), "TOO_LARGE");
    let short = StreamRequest { credit: 1, ..Default::default() };
    let (requests, receiver) = mpsc::channel(2);
    requests.send(short).await.unwrap();
    let mut answers = client.stream(ReceiverStream::new(receiver)).await.unwrap().into_inner();
    assert_eq!(answers.message().await.unwrap().unwrap().ids.len(), 1);
    requests.send(long).await.unwrap();
    assert_eq!(reason(&answers.message().await.unwrap_err()), "TOO_LARGE");
    site.stop().await.unwrap();
}
