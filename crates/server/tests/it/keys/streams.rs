//! What a key may have, on streams that are open while it changes.

use std::time::Duration;

use frazil_server::keys::{KeyEntry, Role};
use frazil_wire::proto::id_service_client::IdServiceClient;
use frazil_wire::proto::{Form, IdBatch, StreamRequest};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Channel;
use tonic::{Code, Request, Streaming};

use super::{keyed, post};
use crate::site::Site;
use crate::site::secured::Keys;

/// An open stream, and where it is granted more.
struct Open {
    credit: mpsc::Sender<StreamRequest>,
    batches: Streaming<IdBatch>,
}

impl Open {
    async fn new(site: &Site, key: &str, first: StreamRequest) -> Self {
        let address = format!("http://{}", site.addrs.grpc.unwrap());
        let channel = Channel::from_shared(address).unwrap().connect().await.unwrap();
        let (credit, requests) = mpsc::channel(4);
        credit.send(first).await.unwrap();
        let mut request = Request::new(ReceiverStream::new(requests));
        request.metadata_mut().insert("authorization", format!("Bearer {key}").parse().unwrap());
        let batches = IdServiceClient::new(channel).stream(request).await.unwrap().into_inner();
        Self { credit, batches }
    }

    async fn next(&mut self) -> Result<usize, tonic::Status> {
        Ok(self.batches.message().await?.expect("a batch").ids.len())
    }

    async fn grant(&self, credit: i64) {
        self.credit.send(StreamRequest { credit, ..StreamRequest::default() }).await.unwrap();
    }
}

fn of_scopes(scopes: &[&str]) -> impl FnOnce(&mut KeyEntry) {
    let scopes = scopes.iter().map(|scope| (*scope).to_owned()).collect();
    move |entry| entry.scopes = Some(scopes)
}

#[tokio::test]
async fn a_scope_that_is_withdrawn_from_a_key_ends_on_open_streams() {
    let mut keys = Keys::new();
    let key = keys.add_with("shop", Role::Ids, of_scopes(&["orders"]));
    let site = keyed(&keys).await;
    let first = StreamRequest { credit: 10, scope: "orders".into(), ..StreamRequest::default() };
    let mut stream = Open::new(&site, &key, first).await;
    assert_eq!(stream.next().await.unwrap(), 10);
    keys.change("shop", of_scopes(&["users"]));
    site.reloader.reload().unwrap();
    stream.grant(10).await;
    let status = stream.next().await.unwrap_err();
    assert_eq!(status.code(), Code::PermissionDenied, "{status}");
    // The key itself is as good as before.
    assert_eq!(post(site.http(), "/ids?scope=users", &key).await.status, 200);
    site.stop().await.unwrap();
}

#[tokio::test]
async fn a_stream_takes_a_quota_in_pieces_that_leave_others_theirs() {
    let mut keys = Keys::new();
    let key = keys.add_with("small", Role::Ids, |entry| {
        entry.ids_per_second = 1000.try_into().ok();
    });
    let site = keyed(&keys).await;
    let first = StreamRequest { credit: 250, ..StreamRequest::default() };
    let mut stream = Open::new(&site, &key, first).await;
    let mut sizes = Vec::new();
    while sizes.iter().sum::<usize>() < 250 {
        sizes.push(stream.next().await.unwrap());
    }
    assert_eq!(sizes, [100, 100, 50]);
    // What it did not take is there for others.
    assert_eq!(post(site.http(), "/ids?count=700", &key).await.status, 200);
    site.stop().await.unwrap();
}

/// A new directory starts two seconds ahead of time: for so long a lane has eleven ticks, and no more.
#[tokio::test]
async fn a_stream_that_takes_all_there_is_leaves_other_keys_some() {
    let mut keys = Keys::new();
    let (loud, quiet) = (keys.add("loud", Role::Ids), keys.add("quiet", Role::Ids));
    let site = Site::start_with(|config| {
        config.keys = Some(keys.path().into());
        config.limits.max_wait = Duration::from_millis(100);
    })
    .await;
    let first = StreamRequest { credit: 1_000_000, form: Form::Runs.into(), ..Default::default() };
    let mut stream = Open::new(&site, &loud, first).await;
    let taken = stream.batches.message().await.unwrap().expect("a batch");
    assert_eq!(taken.runs.iter().map(|run| run.count).sum::<u32>(), 9 * 4096);
    assert_eq!(post(site.http(), "/ids", &quiet).await.status, 200);
    site.stop().await.unwrap();
}

#[tokio::test]
async fn a_key_and_its_replacement_have_one_quota() {
    let mut keys = Keys::new();
    let quota = |entry: &mut KeyEntry| entry.ids_per_second = 1000.try_into().ok();
    let old = keys.add_with("app", Role::Ids, |entry| {
        quota(entry);
        entry.expires = Some("2999-01-01T00:00:00Z".to_owned());
    });
    let new = keys.add_with("app", Role::Ids, quota);
    let site = keyed(&keys).await;
    assert_eq!(post(site.http(), "/ids?count=1000", &old).await.status, 200);
    let second = post(site.http(), "/ids?count=1000", &new).await;
    assert_eq!((second.status, second.reason().as_str()), (429, "QUOTA_EXCEEDED"));
    site.stop().await.unwrap();
}
