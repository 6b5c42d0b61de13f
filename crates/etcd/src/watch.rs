//! The stream of changes of watched keys.

use tokio::sync::mpsc;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::transport::Channel;
use tonic::{Request, Response, Status, Streaming};

use crate::proto::etcdserverpb::watch_client::WatchClient;
use crate::proto::etcdserverpb::watch_request::RequestUnion;
use crate::proto::etcdserverpb::{WatchCreateRequest, WatchRequest, WatchResponse};
use crate::proto::mvccpb::Event;
use crate::session::is_login_wanted;
use crate::txn::prefix_end;

/// Changes of the keys that are watched, from the moment that the watch was started. Dropping it
/// ends the watch.
#[derive(Debug)]
pub struct Watch {
    answers: Streaming<WatchResponse>,
    /// The stream of requests, which etcd takes for the watch: it ends when this is dropped.
    _requests: mpsc::UnboundedSender<WatchRequest>,
}

impl Watch {
    /// The next changes; at least one.
    ///
    /// # Errors
    /// The status that the watch ended with: the connection was lost, or etcd ended the watch, as
    /// it does when it has compacted away what is yet to be told. Something may have been missed.
    pub async fn changes(&mut self) -> Result<Vec<Event>, Status> {
        loop {
            let answer = self.next().await?;
            if !answer.events.is_empty() {
                return Ok(answer.events);
            }
        }
    }

    async fn next(&mut self) -> Result<WatchResponse, Status> {
        match self.answers.message().await? {
            Some(answer) if answer.canceled => Err(ended(&answer.cancel_reason)),
            Some(answer) => Ok(answer),
            None => Err(Status::unavailable("the server ended the watch")),
        }
    }
}

impl WatchCreateRequest {
    /// Watches one key.
    pub fn key(key: impl Into<Vec<u8>>) -> Self {
        Self { key: key.into(), ..Self::default() }
    }

    /// Watches all keys that begin so.
    pub fn prefix(prefix: impl Into<Vec<u8>>) -> Self {
        let key = prefix.into();
        Self { range_end: prefix_end(&key), key, ..Self::default() }
    }
}

/// Starts a watch, and waits until etcd has confirmed every range.
pub(crate) async fn start(
    channel: Channel,
    request: Request<&[WatchCreateRequest]>,
) -> Result<Response<Watch>, Status> {
    let (sender, requests) = mpsc::unbounded_channel();
    let mut unconfirmed = request.get_ref().len();
    let request = request.map(|ranges| {
        for range in ranges {
            let create = RequestUnion::CreateRequest(range.clone());
            // The receiver is in this function: nothing is refused.
            let _ = sender.send(WatchRequest { request_union: Some(create) });
        }
        UnboundedReceiverStream::new(requests)
    });
    let answers = WatchClient::new(channel).watch(request).await?.into_inner();
    let mut watch = Watch { answers, _requests: sender };
    while unconfirmed > 0 {
        unconfirmed -= usize::from(watch.next().await?.created);
    }
    Ok(Response::new(watch))
}

/// The end of a watch as a status: etcd says it in words, those of the status that another request
/// would have failed with.
fn ended(why: &str) -> Status {
    if why.contains("permission denied") {
        Status::permission_denied(why)
    } else if is_login_wanted(why) {
        Status::unauthenticated(why)
    } else {
        Status::unavailable(format!("the server ended the watch: {why}"))
    }
}
