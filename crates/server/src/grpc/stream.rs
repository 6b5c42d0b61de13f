//! The call `Stream`: IDs for as long as the client grants credit.

use std::sync::Arc;

use frazil_wire::proto::{Form, IdBatch, StreamRequest};
use frazil_wire::{ApiError, Reason};
use tokio::sync::mpsc;
use tokio::sync::mpsc::OwnedPermit;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Request, Status, Streaming};

use super::ids::{form, message, remote};
use super::message::unread;
use crate::app::Shared;
use crate::cluster::scopes::Origin;
use crate::metrics::{Method, Protocol};
use crate::net::listener::Remote;
use crate::policy::access::Caller;
use crate::policy::admission::IdsRequest;
use crate::policy::queue::Count;

/// Credit that may be open at a time: minutes of a lane. More is a mistake.
const CREDIT_MAX: u64 = 1_000_000_000;
/// IDs of one message, one by one: 64 kilobytes.
const IDS_MAX: u32 = 8192;
/// IDs of one message as runs: more than may be open at once in a lane.
const RUN_IDS_MAX: u32 = 1 << 16;
/// Messages on their way to the client: enough to keep the connection busy.
const QUEUE: usize = 4;

/// Reads the first request, then sends batches in a task of its own.
pub(super) async fn begin(
    shared: Arc<Shared>,
    caller: Caller,
    request: Request<Streaming<StreamRequest>>,
) -> Result<ReceiverStream<Result<IdBatch, Status>>, ApiError> {
    let remote = remote(&request)?;
    let mut requests = request.into_inner();
    // A client that opens a stream and says nothing holds a place for nothing.
    let patience = shared.issuer.limits().body_timeout;
    let first = tokio::time::timeout(patience, requests.message()).await.map_err(|_| {
        let detail = format_args!("no first request came within {patience:?}");
        ApiError::new(Reason::Deadline, detail)
    })?;
    let first = match first {
        Ok(Some(first)) => first,
        Ok(None) => StreamRequest::default(),
        Err(status) => return Err(unread(&status)),
    };
    let mut credit = Credit::default();
    credit.grant(first.credit)?;
    let (scope, form) = (first.scope, form(first.form)?);
    // What can never be is said before anything is sent.
    caller.check_scope(Some(scope.as_str()).filter(|name| !name.is_empty()), 1)?;
    shared.issuer.scope(&scope)?;
    let (sender, receiver) = mpsc::channel(QUEUE);
    let connections = shared.shutdown.connections.clone();
    let stream = Stream { shared, remote, caller, requests, credit, scope, form, sender };
    connections.spawn(stream.run());
    Ok(ReceiverStream::new(receiver))
}

struct Stream {
    shared: Arc<Shared>,
    remote: Remote,
    caller: Caller,
    requests: Streaming<StreamRequest>,
    credit: Credit,
    scope: String,
    form: Form,
    sender: mpsc::Sender<Result<IdBatch, Status>>,
}

/// What the client still wants.
#[derive(Debug, Default)]
struct Credit {
    open: u64,
    /// The client grants no more.
    is_final: bool,
}

impl Credit {
    fn grant(&mut self, more: i64) -> Result<(), ApiError> {
        let open = u64::try_from(more).ok().map(|more| self.open.saturating_add(more));
        match open {
            Some(open) if open <= CREDIT_MAX => {
                self.open = open;
                Ok(())
            }
            _ => Err(ApiError::new(
                Reason::CountOutOfRange,
                format_args!(
                    "a credit of {more} is out of range: at most {CREDIT_MAX} may be open"
                ),
            )),
        }
    }
}

impl Stream {
    async fn run(mut self) {
        let closing = self.shared.shutdown.closing.clone();
        let outcome = tokio::select! {
            outcome = self.serve() => outcome,
            () = closing.cancelled() => {
                Err(ApiError::new(Reason::Draining, "the node is shutting down: ask another one"))
            }
        };
        let requests = &self.shared.metrics.requests;
        match outcome {
            Ok(()) => requests.done_many(Protocol::Grpc, Method::Stream, 1),
            Err(error) => {
                requests.failed(Protocol::Grpc, Method::Stream, error.reason);
                // A client that is gone, or does not read, needs no reason.
                let _ = self.sender.try_send(Err(error.into()));
            }
        }
    }

    /// Sends batches while there is credit, and ends with the client.
    async fn serve(&mut self) -> Result<(), ApiError> {
        loop {
            if self.credit.open == 0 {
                if self.credit.is_final {
                    return Ok(());
                }
                let request = self.requests.message().await;
                self.note(request)?;
                continue;
            }
            let Some(place) = self.place().await? else { return Ok(()) };
            let most = if self.form == Form::Runs { RUN_IDS_MAX } else { IDS_MAX };
            let count = u32::try_from(self.credit.open).unwrap_or(most).min(most);
            // The key may end or change while the stream goes on.
            self.shared.authenticator.renew(&mut self.caller)?;
            let ask = IdsRequest {
                count: Count::UpTo(count),
                is_run: false,
                scope: &self.scope,
                patience: None,
                waits_for_quota: true,
                origin: Origin::Client,
                protocol: Protocol::Grpc,
            };
            let issued = tokio::select! {
                biased;
                request = self.requests.message(), if !self.credit.is_final => {
                    self.note(request)?;
                    continue;
                }
                issued = self.shared.issue(&self.remote, &self.caller, ask) => issued,
            };
            let issued = match issued {
                Ok(issued) => issued,
                // A stream is slowed down.
                Err(error) if error.reason == Reason::QuotaExceeded => {
                    tokio::time::sleep(error.retry_after.ok_or(error)?).await;
                    continue;
                }
                Err(error) => return Err(error),
            };
            let count = issued.batch.len() as u64;
            self.credit.open = self.credit.open.saturating_sub(count);
            place.send(Ok(message(&self.shared.name, &issued, self.form)));
        }
    }

    /// A place for the next message; none when the client is gone.
    async fn place(&self) -> Result<Option<OwnedPermit<Result<IdBatch, Status>>>, ApiError> {
        let patience = self.shared.issuer.limits().write_timeout;
        let place = tokio::time::timeout(patience, self.sender.clone().reserve_owned()).await;
        place.map(Result::ok).map_err(|_| {
            let detail = format_args!("what was granted was not read within {patience:?}");
            ApiError::new(Reason::Deadline, detail)
        })
    }

    /// Notes what the client says.
    fn note(&mut self, request: Result<Option<StreamRequest>, Status>) -> Result<(), ApiError> {
        match request {
            Ok(Some(request)) => self.credit.grant(request.credit),
            // The client is done with granting, or gone: what is granted is still sent, if it can.
            Ok(None) => {
                self.credit.is_final = true;
                Ok(())
            }
            Err(status) if status.code() == Code::Cancelled => {
                self.credit.is_final = true;
                Ok(())
            }
            Err(status) => Err(unread(&status)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absurd_credit_is_refused() {
        let mut credit = Credit::default();
        assert_eq!(credit.grant(0), Ok(()));
        assert_eq!(credit.grant(1_000_000_000), Ok(()));
        for absurd in [1, -1, i64::MAX, i64::MIN] {
            let error = credit.grant(absurd).unwrap_err();
            assert_eq!((error.reason, credit.open), (Reason::CountOutOfRange, 1_000_000_000));
        }
    }
}
