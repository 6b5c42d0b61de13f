//! Connections for gRPC, as many as may be open.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::time::Sleep;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::server::Connected;

use crate::app::Shared;
use crate::listener::{Arrival, arrival};
use crate::places::Place;
use crate::stream::Stream;
use crate::tls::Speech;

/// Connections that were accepted and not yet taken up.
const QUEUE: usize = 16;

/// A connection and its place among those that may be open.
#[derive(Debug)]
pub(super) struct Placed {
    stream: Stream,
    /// The client has until then to say that it speaks HTTP/2.
    greeting: Option<Greeting>,
    _place: Place,
}

#[derive(Debug)]
struct Greeting {
    deadline: Pin<Box<Sleep>>,
    missing: usize,
}

/// What every client sends first: the preface of HTTP/2 has so many bytes.
const PREFACE_BYTES: usize = 24;

/// Accepts until the server closes.
pub(super) fn incoming(
    listener: TcpListener,
    shared: Arc<Shared>,
) -> ReceiverStream<io::Result<Placed>> {
    let (sender, receiver) = mpsc::channel(QUEUE);
    let connections = shared.going.connections.clone();
    connections.spawn(accept(listener, shared, sender));
    ReceiverStream::new(receiver)
}

async fn accept(
    listener: TcpListener,
    shared: Arc<Shared>,
    sender: mpsc::Sender<io::Result<Placed>>,
) {
    let places = shared.places.grpc.clone();
    while let Some(Arrival { stream, place }) = arrival(&listener, &places, &shared.going).await {
        // There are no probes to answer here that the one for HTTP does not answer.
        if place.is_spare() {
            continue;
        }
        let patience = shared.issuer.limits().head_timeout;
        let placed = move |stream| {
            let deadline = Box::pin(tokio::time::sleep(patience));
            let greeting = Some(Greeting { deadline, missing: PREFACE_BYTES });
            Ok(Placed { stream, greeting, _place: place })
        };
        if shared.tls.is_none() {
            if sender.send(placed(Stream::Plain(stream))).await.is_err() {
                return;
            }
            continue;
        }
        // A client that is slow to shake hands holds up nobody else.
        let (own, sender) = (shared.clone(), sender.clone());
        shared.going.connections.spawn(async move {
            if let Ok(stream) = own.secured(stream, Speech::Grpc).await {
                // Nobody is left to serve it when the server goes.
                let _ = sender.send(placed(stream)).await;
            }
        });
    }
}

impl Connected for Placed {
    type ConnectInfo = ();

    fn connect_info(&self) {}
}

impl AsyncRead for Placed {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
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

impl AsyncWrite for Placed {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
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
        Pin::new(&mut self.stream).poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
