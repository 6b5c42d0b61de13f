//! Connections for gRPC, as many as may be open.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::server::{Connected, TcpConnectInfo};

use crate::drain::Going;
use crate::listener::BREATH;

/// Connections that were accepted and not yet taken up.
const QUEUE: usize = 16;

/// A connection and its place among those that may be open.
#[derive(Debug)]
pub(super) struct Placed {
    stream: TcpStream,
    _place: OwnedSemaphorePermit,
}

/// Accepts until the server closes.
pub(super) fn incoming(
    listener: TcpListener,
    most: usize,
    going: &Going,
) -> ReceiverStream<io::Result<Placed>> {
    let (sender, receiver) = mpsc::channel(QUEUE);
    let closing = going.closing.clone();
    let accepting = accept(listener, most, sender);
    going.connections.spawn(async move {
        closing.run_until_cancelled(accepting).await;
    });
    ReceiverStream::new(receiver)
}

async fn accept(listener: TcpListener, most: usize, sender: mpsc::Sender<io::Result<Placed>>) {
    let places = Arc::new(Semaphore::new(most));
    while let Ok(place) = places.clone().acquire_owned().await {
        match listener.accept().await {
            Ok((stream, _)) => {
                // Answers are written whole; holding them back would only add latency.
                let _ = stream.set_nodelay(true);
                if sender.send(Ok(Placed { stream, _place: place })).await.is_err() {
                    return;
                }
            }
            // The system gives no more connections: others must end first.
            Err(_) => tokio::time::sleep(BREATH).await,
        }
    }
}

impl Connected for Placed {
    type ConnectInfo = TcpConnectInfo;

    fn connect_info(&self) -> TcpConnectInfo {
        self.stream.connect_info()
    }
}

impl AsyncRead for Placed {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
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
