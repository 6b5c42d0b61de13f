//! gRPC connections before and below HTTP/2: accepted, limited, and ended when a client is too slow.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Buf, Bytes};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::time::{Sleep, timeout_at};
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::server::Connected;

use super::greeting::{self, Beginning, PREFACE};
use super::unauthenticated::{UNAUTHENTICATED_MAX, UnauthenticatedClient};
use crate::app::Shared;
use crate::config::Limits;
use crate::net::connection_limits::ConnectionPermit;
use crate::net::listener::{NewConnection, Remote, next_connection};
use crate::net::peek::peek_until;
use crate::net::stream::Stream;
use crate::net::tls::TlsProtocol;
use crate::net::unauthenticated::{Cut, UnauthenticatedClients, UnauthenticatedPermit};

/// Connections that were accepted and not yet taken up.
const QUEUE: usize = 16;

/// An accepted connection, as the library reads and writes it, with its permit.
#[derive(Debug)]
pub(super) struct AcceptedStream {
    stream: Stream,
    /// The client has until then to say that it speaks HTTP/2.
    greeting: Option<Greeting>,
    /// There while the client has shown no key and needs one.
    unauthenticated: Option<UnauthenticatedClient>,
    /// What the library writes first, and was written already.
    written: Bytes,
    /// The client has until then to take what is being written.
    unread: Option<Pin<Box<Sleep>>>,
    write_timeout: Duration,
    /// Whether the connection was cut when that was looked at last.
    is_last_turn: bool,
    connection: Connection,
    _permit: ConnectionPermit,
}

/// A connection as its calls see it.
#[derive(Clone, Debug)]
pub(super) struct Connection {
    pub(super) remote: Remote,
    pub(super) client_state: Arc<ClientState>,
}

/// What the calls of a connection have shown of its client.
#[derive(Debug, Default)]
pub(super) struct ClientState {
    is_admitted: AtomicBool,
    is_probing: AtomicBool,
    pub(super) cut: Arc<Cut>,
    /// There while the connection is one of the unauthenticated.
    permit: Mutex<Option<UnauthenticatedPermit>>,
}

impl ClientState {
    /// The connection is one of the unauthenticated from now on, until a call of it is let in.
    pub(super) fn keep(&self, permit: UnauthenticatedPermit) {
        *self.permit.lock().unwrap_or_else(PoisonError::into_inner) = Some(permit);
    }

    /// A call was let in: from this moment on the connection is not ended for being unauthenticated.
    pub(super) fn admit(&self) {
        // Relaxed, here and below: words that stand for themselves. Most calls are not the first.
        if self.is_admitted.load(Ordering::Relaxed)
            || self.is_admitted.swap(true, Ordering::Relaxed)
        {
            return;
        }
        let permit = self.permit.lock().unwrap_or_else(PoisonError::into_inner).take();
        if permit.is_some() {
            drop(permit);
            self.cut.spare();
        }
    }

    /// A call was not let in, or asks for nothing that needs a key.
    pub(super) fn decide(&self) {
        // Most calls come after the connection was admitted, or need no key.
        if !self.is_admitted.load(Ordering::Relaxed) {
            self.cut.decided();
        }
    }

    /// The client asked how the node is doing, as balancers do without a key.
    pub(super) fn probe(&self) {
        self.is_probing.store(true, Ordering::Relaxed);
    }

    /// Whether it did so since this was asked last.
    pub(super) fn has_probed(&self) -> bool {
        self.is_probing.swap(false, Ordering::Relaxed)
    }
}

#[derive(Debug)]
struct Greeting {
    deadline: Pin<Box<Sleep>>,
    missing: usize,
}

/// Bytes that are looked at for the head of a first call, beyond those of the head: settings, and
/// what frames add.
const GREETING_BYTES_MAX: usize = 1024;

/// Accepts until the server closes.
pub(super) fn incoming(
    listener: TcpListener,
    shared: Arc<Shared>,
) -> ReceiverStream<io::Result<AcceptedStream>> {
    let (sender, receiver) = mpsc::channel(QUEUE);
    let connections = shared.shutdown.connections.clone();
    connections.spawn(accept(listener, shared, sender));
    ReceiverStream::new(receiver)
}

async fn accept(
    listener: TcpListener,
    shared: Arc<Shared>,
    sender: mpsc::Sender<io::Result<AcceptedStream>>,
) {
    let limits = shared.connection_limits.grpc.clone();
    let unauthenticated_clients = Arc::new(UnauthenticatedClients::new(
        UNAUTHENTICATED_MAX,
        shared.issuer.limits().auth_timeout,
    ));
    while let Some(arrival) = next_connection(&listener, &limits, &shared.shutdown).await {
        if shared.tls.is_none() && shared.authenticator.keys().is_none() && !arrival.remote.is_proxy
        {
            let stream = Stream::Plain(arrival.stream);
            let accepted = AcceptedStream::new(&shared, stream, arrival.permit, arrival.remote);
            if let Some(accepted) = accepted
                && sender.send(Ok(accepted)).await.is_err()
            {
                return;
            }
            continue;
        }
        // A client that is slow to shake hands, or to call, holds up nobody else.
        let (own, sender, unauthenticated_clients) =
            (shared.clone(), sender.clone(), unauthenticated_clients.clone());
        shared.shutdown.connections.spawn(async move {
            let ready = own.shutdown.closing.run_until_cancelled(ready(
                &own,
                arrival,
                &unauthenticated_clients,
            ));
            if let Some(accepted) = ready.await.flatten() {
                // Nobody is left to serve it when the server goes.
                let _ = sender.send(Ok(accepted)).await;
            }
        });
    }
}

/// A connection after what comes before HTTP/2: the word of a proxy, TLS, and without a key the
/// head of a call.
async fn ready(
    shared: &Shared,
    arrival: NewConnection,
    unauthenticated_clients: &Arc<UnauthenticatedClients>,
) -> Option<AcceptedStream> {
    let NewConnection { stream, permit, mut remote } =
        arrival.after_proxy_header(&shared.shutdown).await?;
    let stream = shared.secured(stream, TlsProtocol::Grpc, &mut remote).await.ok()?;
    let mut accepted = AcceptedStream::new(shared, stream, permit, remote)?;
    if let Some(unauthenticated) = &accepted.unauthenticated {
        // Behind TLS there are buffers anyway.
        if let Stream::Plain(stream) = &accepted.stream {
            let calling = first_call(stream, shared.issuer.limits());
            accepted.written = timeout_at(unauthenticated.deadline(), calling).await.ok()?.ok()?;
        }
        unauthenticated.enter(unauthenticated_clients, &accepted.connection).await?;
    }
    Some(accepted)
}

/// Waits for the head of a first call. Gives what was written meanwhile.
async fn first_call(stream: &TcpStream, limits: &Limits) -> io::Result<Bytes> {
    let most = limits.max_head_bytes.saturating_add(GREETING_BYTES_MAX);
    let mut beginning = Beginning::Preface;
    let greeted = peek_until(stream, most, |bytes| {
        beginning = Beginning::of(bytes);
        beginning != Beginning::Preface
    });
    tokio::time::timeout(limits.head_timeout, greeted).await??;
    if beginning != Beginning::Greeted {
        return Ok(Bytes::new());
    }
    let settings = Bytes::from(greeting::settings(limits));
    let mut unwritten = settings.clone();
    while unwritten.has_remaining() {
        stream.writable().await?;
        match stream.try_write(&unwritten) {
            Ok(written) => unwritten.advance(written),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    peek_until(stream, most, |bytes| Beginning::of(bytes) == Beginning::Called).await?;
    Ok(settings)
}

impl AcceptedStream {
    /// None for a spare permit: there are no probes to answer here that the one for HTTP does not.
    fn new(
        shared: &Shared,
        stream: Stream,
        permit: ConnectionPermit,
        remote: Remote,
    ) -> Option<Self> {
        if permit.is_spare() {
            return None;
        }
        let limits = *shared.issuer.limits();
        let deadline = Box::pin(tokio::time::sleep(limits.head_timeout));
        let is_known = shared.authenticator.keys().is_none()
            || shared.authenticator.by_certificate(&remote).is_some();
        Some(Self {
            stream,
            greeting: Some(Greeting { deadline, missing: PREFACE.len() }),
            unauthenticated: (!is_known).then(|| UnauthenticatedClient::new(limits.auth_timeout)),
            written: Bytes::new(),
            unread: None,
            write_timeout: limits.write_timeout,
            is_last_turn: false,
            connection: Connection { remote, client_state: Arc::default() },
            _permit: permit,
        })
    }

    /// An error if the client has shown no key for too long.
    fn check_expiry(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        let client_state = &self.connection.client_state;
        if client_state.is_admitted.load(Ordering::Relaxed) {
            self.unauthenticated = None;
        }
        let unauthenticated = self.unauthenticated.as_mut();
        match unauthenticated.is_some_and(|one| one.poll_expired(client_state, context).is_ready())
        {
            true => Err(io::ErrorKind::TimedOut.into()),
            false => Ok(()),
        }
    }

    /// An error if the connection was cut. It has one more turn before: a call that was read may be about to be let in.
    fn check_cut(&mut self, context: &Context<'_>) -> io::Result<()> {
        let is_cut = self.connection.client_state.cut.poll_cut(context).is_ready();
        match (is_cut, std::mem::replace(&mut self.is_last_turn, is_cut)) {
            (true, true) => Err(io::ErrorKind::TimedOut.into()),
            (true, false) => {
                context.waker().wake_by_ref();
                Ok(())
            }
            (false, _) => Ok(()),
        }
    }

    /// Leaves out what was written before the library wrote it.
    fn leave_out(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = bytes.len().min(self.written.len());
        if bytes[..count] != self.written[..count] {
            // Never: it is what `greeting::settings` is held to.
            return Err(io::Error::other("the library has other settings"));
        }
        self.written.advance(count);
        Ok(count)
    }

    /// What was written, unless the client takes too long to read.
    fn in_time(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if written.is_ready() {
            self.unread = None;
            return written;
        }
        // Whoever does not read is not read from either, and must still hear of an end.
        self.check_expiry(context)?;
        self.check_cut(context)?;
        let limit = self.write_timeout;
        let unread = self.unread.get_or_insert_with(|| Box::pin(tokio::time::sleep(limit)));
        unread.as_mut().poll(context).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl Connected for AcceptedStream {
    type ConnectInfo = Connection;

    fn connect_info(&self) -> Connection {
        self.connection.clone()
    }
}

impl AsyncRead for AcceptedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.check_expiry(context)?;
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        if read.is_pending() {
            // Not before: the key may be in what is still to be read.
            self.check_cut(context)?;
        } else if self.unauthenticated.is_some() {
            self.connection.client_state.cut.heard();
        }
        if let Some(greeting) = &mut self.greeting {
            let heard = buffer.filled().len() - before;
            greeting.missing = greeting.missing.saturating_sub(heard);
            if greeting.missing == 0 {
                self.greeting = None;
            } else if greeting.deadline.as_mut().poll(context).is_ready() {
                return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
            }
        }
        read
    }
}

impl AsyncWrite for AcceptedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.written.has_remaining() {
            return Poll::Ready(self.leave_out(bytes));
        }
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.in_time(context, written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if self.written.has_remaining() {
            let first = parts.iter().find(|part| !part.is_empty());
            return Poll::Ready(first.map_or(Ok(0), |first| self.leave_out(first)));
        }
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.in_time(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
