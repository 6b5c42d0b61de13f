//! The listener: accepts connections, as many as may be open.

use std::future::Future;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};

use crate::app::shutdown::Shutdown;
use crate::net::connection_limits::{ConnectionLimits, ConnectionPermit};
use crate::net::proxies::read_proxy_header;
pub(crate) use crate::net::remote::Remote;
use crate::net::serve_threads::ServeThreads;

/// When the system gives no more connections, others must end first.
const BREATH: Duration = Duration::from_millis(100);

/// A connection that was just accepted, and its permit.
#[derive(Debug)]
pub(crate) struct NewConnection {
    pub(crate) stream: TcpStream,
    pub(crate) permit: ConnectionPermit,
    pub(crate) remote: Remote,
}

impl NewConnection {
    /// Reads from a trusted proxy whom it speaks for, before anything else is read. `None`: it said
    /// nothing that makes sense, its client has no permit, or the server closes.
    pub(crate) async fn after_proxy_header(self, shutdown: &Shutdown) -> Option<Self> {
        if !self.remote.is_proxy {
            return Some(self);
        }
        let Self { mut stream, permit, mut remote } = self;
        let limit = permit.limits().handshake_timeout;
        let introduced = read_proxy_header(&mut stream, limit);
        match shutdown.closing.run_until_cancelled(introduced).await? {
            Ok(None) => Some(Self { stream, permit, remote }),
            Ok(Some(client)) => {
                let listener = remote.listener;
                let permit = told_if_full(listener, client, permit.count_for(client))?;
                remote.set_client(client, &permit);
                Some(Self { stream, permit, remote })
            }
            Err(error) => {
                let (proxy, listener) = (remote.address, remote.listener);
                tracing::warn!(
                    %proxy,
                    listener,
                    %error,
                    "closed the connection of a trusted proxy, which sent no valid PROXY header: \
                     check that it speaks version 2 of the PROXY protocol"
                );
                None
            }
        }
    }
}

/// Accepts until the server closes; each connection is served in a task of its own.
pub(crate) async fn accept<F>(
    listener: TcpListener,
    limits: Arc<ConnectionLimits>,
    shutdown: Shutdown,
    threads: &ServeThreads,
    serve: impl Fn(NewConnection) -> F + Clone + Send + 'static,
) where
    F: Future<Output = ()> + Send + 'static,
{
    while let Some(NewConnection { stream, permit, remote }) =
        next_connection(&listener, &limits, &shutdown).await
    {
        let (serve, own) = (serve.clone(), shutdown.clone());
        let serve = async move |stream| {
            let arrival = NewConnection { stream, permit, remote };
            if let Some(arrival) = arrival.after_proxy_header(&own).await {
                serve(arrival).await;
            }
        };
        threads.serve(&shutdown, stream, serve);
    }
}

/// The next client for whom there is a permit; `None` when the server closes. Those for whom there
/// is none are sent away: a client that waits for nothing cannot ask another node.
pub(crate) async fn next_connection(
    listener: &TcpListener,
    limits: &Arc<ConnectionLimits>,
    shutdown: &Shutdown,
) -> Option<NewConnection> {
    let mut is_troubled = false;
    loop {
        let accepted = tokio::select! {
            () = shutdown.closing.cancelled() => return None,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, peer)) => {
                is_troubled = false;
                let permit = limits.take(peer.ip());
                if let Some(permit) = told_if_full(limits.listener, peer.ip(), permit) {
                    // Answers are written whole; holding them back would only add latency.
                    let _ = stream.set_nodelay(true);
                    let remote = Remote::new(peer.ip(), &permit);
                    return Some(NewConnection { stream, permit, remote });
                }
            }
            Err(error) => {
                if !std::mem::replace(&mut is_troubled, true) {
                    tracing::warn!(
                        %error,
                        "cannot accept connections, and tries again: if too many files are open, \
                         raise the limit (ulimit -n)"
                    );
                }
                tokio::time::sleep(BREATH).await;
            }
        }
    }
}

fn told_if_full(
    listener: &str,
    peer: IpAddr,
    permit: Option<ConnectionPermit>,
) -> Option<ConnectionPermit> {
    if permit.as_ref().is_none_or(ConnectionPermit::is_spare) {
        tracing::warn!(
            listener,
            %peer,
            "connection limit reached, for the listener or for one address: see max_connections and \
             max_connections_per_peer"
        );
    }
    permit
}
