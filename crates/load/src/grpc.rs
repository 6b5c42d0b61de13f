//! Asking over gRPC: calls of `Next`, or a stream that is paced by credit.

use std::collections::VecDeque;
use std::error::Error as _;
use std::task::{Context, Poll};
use std::time::Instant;

use frazil_wire::Reason;
use frazil_wire::proto::id_service_client::IdServiceClient;
use frazil_wire::proto::{Form, IdBatch, InfoRequest, NextRequest, Run, StreamRequest};
use hyper::body::Incoming;
use hyper::client::conn::http2::{self, SendRequest};
use hyper::http::{Request, Response, Uri};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::sync::mpsc;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::body::Body;
use tonic::codegen::Service;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::{Code, Status, Streaming};
use tonic_types::StatusExt;

use crate::book::Book;
use crate::client::{Facts, layout};
use crate::connect::Io;
use crate::fault::Fault;
use crate::moment::now;
use crate::plan::Plan;

/// Bytes of a message: four million IDs are half of that.
const MESSAGE_BYTES_MAX: usize = 64 << 20;
/// IDs of a message, whatever its runs say: as many as fit into one that has them one by one.
const COUNT_MAX: u64 = MESSAGE_BYTES_MAX as u64 / 8;

/// Calls of `Next`, one after the other.
#[derive(Debug)]
pub(crate) struct Next {
    link: Link,
    request: NextRequest,
}

impl Next {
    pub(crate) async fn open(plan: &Plan) -> Result<Self, Fault> {
        let count = i64::try_from(plan.batch).expect("limited by the arguments");
        let scope = plan.scope.clone().unwrap_or_default();
        let request = NextRequest { count: Some(count), scope, form: form(plan) };
        Ok(Self { link: Link::open(plan).await?, request })
    }

    pub(crate) async fn facts(&mut self) -> Result<Facts, Fault> {
        self.link.facts().await
    }

    pub(crate) async fn round(&mut self, book: &mut Book) -> Result<(), Fault> {
        let request = self.link.with_key(self.request.clone());
        match self.link.client.next(request).await {
            Ok(reply) => {
                let (at, reply) = (now(), reply.into_inner());
                enter(book, &reply.ids, &reply.runs)?;
                book.answered(at, reply.metadata.map(|metadata| metadata.worker));
                Ok(())
            }
            Err(status) => book.refused(fault(&status)),
        }
    }
}

/// A stream; a request is a grant of a batch.
#[derive(Debug)]
pub(crate) struct Stream {
    link: Link,
    batch: u64,
    scope: String,
    form: i32,
    /// Grants that are open at a time.
    depth: usize,
    open: Option<Open>,
}

/// A stream that has begun.
#[derive(Debug)]
struct Open {
    grants: mpsc::UnboundedSender<StreamRequest>,
    batches: Streaming<IdBatch>,
    /// Since when each grant is due.
    waiting: VecDeque<Instant>,
    /// IDs that came beyond the grants that are done.
    ahead: u64,
}

impl Stream {
    pub(crate) async fn open(plan: &Plan, depth: usize) -> Result<Self, Fault> {
        let scope = plan.scope.clone().unwrap_or_default();
        let link = Link::open(plan).await?;
        Ok(Self { link, batch: plan.batch, scope, form: form(plan), depth, open: None })
    }

    pub(crate) async fn facts(&mut self) -> Result<Facts, Fault> {
        self.link.facts().await
    }

    /// Sees to it that as many grants are open as may be, and waits until the first of them is done.
    pub(crate) async fn round(&mut self, book: &mut Book) -> Result<(), Fault> {
        // A stream that failed has ended, and its connection with it.
        self.first_done(book).await
    }

    async fn first_done(&mut self, book: &mut Book) -> Result<(), Fault> {
        let credit = i64::try_from(self.batch).expect("limited by the arguments");
        if self.open.is_none() {
            self.begin(credit, book.due()).await.map_err(|status| fault(&status))?;
        }
        let open = self.open.as_mut().expect("it has just begun");
        while open.waiting.len() < self.depth {
            let due = if open.waiting.is_empty() { book.due() } else { now() };
            // The stream itself tells when it is over.
            let _ = open.grants.send(StreamRequest { credit, ..StreamRequest::default() });
            open.waiting.push_back(due);
        }
        while open.ahead < self.batch {
            let batch = open.batches.message().await.map_err(|status| fault(&status))?;
            let batch = batch.ok_or_else(|| Fault::Lost("the stream has ended".to_owned()))?;
            open.ahead += enter(book, &batch.ids, &batch.runs)?;
            book.part(batch.metadata.map(|metadata| metadata.worker));
        }
        let at = now();
        if open.ahead > self.batch * open.waiting.len() as u64 {
            return Err(Fault::stranger("more IDs came than were granted"));
        }
        open.ahead -= self.batch;
        if let Some(due) = open.waiting.pop_front() {
            book.done(due, at);
        }
        Ok(())
    }

    /// Begins with a first grant: servers answer when they know what is wanted.
    async fn begin(&mut self, credit: i64, due: Instant) -> Result<(), Status> {
        let (grants, requests) = mpsc::unbounded_channel();
        let scope = self.scope.clone();
        // It cannot be closed: the other end is here.
        let _ = grants.send(StreamRequest { credit, scope, form: self.form });
        let request = self.link.with_key(UnboundedReceiverStream::new(requests));
        let batches = self.link.client.stream(request).await?.into_inner();
        self.open = Some(Open { grants, batches, waiting: [due].into(), ahead: 0 });
        Ok(())
    }
}

/// The form in which IDs are asked for.
fn form(plan: &Plan) -> i32 {
    let form = if plan.runs { Form::Runs } else { Form::Ids };
    form.into()
}

/// Enters the IDs of an answer, whichever form it has them in; how many there are.
fn enter(book: &mut Book, ids: &[u64], runs: &[Run]) -> Result<u64, Fault> {
    ids.iter().for_each(|id| book.id(*id));
    let of_runs: u64 = runs.iter().map(|run| u64::from(run.count)).sum();
    // A run costs nothing to send, however long it says it is.
    if of_runs > COUNT_MAX {
        return Err(Fault::stranger("its runs have more IDs than can be asked for"));
    }
    runs.iter().for_each(|run| book.run(run.first, run.count, run.stride));
    Ok(ids.len() as u64 + of_runs)
}

/// A connection with a client on it.
#[derive(Debug)]
struct Link {
    client: IdServiceClient<Channel>,
    /// What shows the key.
    key: Option<MetadataValue<Ascii>>,
}

impl Link {
    async fn open(plan: &Plan) -> Result<Self, Fault> {
        let key = plan.key().map(|key| {
            let mut value = MetadataValue::try_from(format!("Bearer {}", key))
                .map_err(|_| Fault::refused("UNAUTHENTICATED", "no key has such characters"))?;
            value.set_sensitive(true);
            Ok(value)
        });
        let key = key.transpose()?;
        let io = TokioIo::new(Io::connect(plan, Some(b"h2")).await?);
        let shaken = http2::handshake(TokioExecutor::new(), io).await;
        let (sender, connection) = shaken.map_err(|error| Fault::Lost(error.to_string()))?;
        tokio::spawn(async move {
            // Whoever waits for an answer is told.
            let _ = connection.await;
        });
        let scheme = if plan.address.is_secure { "https" } else { "http" };
        let origin = format!("{scheme}://{}", plan.address.authority());
        let origin: Uri = origin.parse().map_err(Fault::stranger)?;
        let client = IdServiceClient::with_origin(Channel(sender), origin)
            .max_decoding_message_size(MESSAGE_BYTES_MAX);
        Ok(Self { client, key })
    }

    async fn facts(&mut self) -> Result<Facts, Fault> {
        let request = self.with_key(InfoRequest {});
        let info = self.client.info(request).await.map_err(|status| fault(&status))?.into_inner();
        Ok(Facts {
            layout: layout(&info.layout)?,
            version: info.version,
            node: info.node,
            max_count: info.max_count.into(),
            // It is not told here.
            is_strict: false,
        })
    }

    fn with_key<T>(&self, message: T) -> tonic::Request<T> {
        let mut request = tonic::Request::new(message);
        if let Some(key) = &self.key {
            request.metadata_mut().insert("authorization", key.clone());
        }
        request
    }
}

/// One HTTP/2 connection, without the queue and the task that tonic's own has.
#[derive(Clone, Debug)]
struct Channel(SendRequest<Body>);

impl Service<Request<Body>> for Channel {
    type Response = Response<Incoming>;
    type Error = hyper::Error;
    type Future = std::pin::Pin<
        Box<dyn Future<Output = Result<Response<Incoming>, hyper::Error>> + Send + 'static>,
    >;

    /// It is, since one call is made at a time. A connection that has gone shows in the call: what
    /// is not ready would be told without the cause, and so be taken for a refusal.
    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), hyper::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        Box::pin(self.0.send_request(request))
    }
}

/// Why a call failed: the server's reason, or the connection.
fn fault(status: &Status) -> Fault {
    if let Some(cause) = status.source() {
        return Fault::Lost(cause.to_string());
    }
    let details = status.get_error_details();
    match details.error_info() {
        Some(info) => Fault::refused(&info.reason, status.message()),
        None if status.code() == Code::Unimplemented => Fault::stranger(status.message()),
        None => {
            let reason =
                Reason::ALL.iter().find(|reason| reason.grpc_code() == i32::from(status.code()));
            let name = reason.map_or("INTERNAL", |reason| reason.name());
            Fault::refused(name, status.message())
        }
    }
}
