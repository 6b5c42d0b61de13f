//! Threads that serve connections.

use std::future::Future;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;

use tokio::net::TcpStream;
use tokio::runtime::Handle;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::app::shutdown::Shutdown;

/// How many threads serve where nobody says: half of the cores, so that leases, probes and those
/// who ask for IDs on the same machine find one too.
#[must_use]
pub fn default_threads() -> usize {
    std::thread::available_parallelism().map_or(1, |cores| cores.get() / 2).max(1)
}

/// Threads with a runtime each. A connection stays on its thread, so no request pays for waking
/// another one, or for locks between them.
#[derive(Debug)]
pub(crate) struct ServeThreads {
    members: Vec<Handle>,
    threads: Vec<JoinHandle<()>>,
    turn: AtomicUsize,
    /// Ends the threads when it is dropped.
    end: DropGuard,
}

impl ServeThreads {
    /// Starts so many threads; without any, connections are served where the caller runs.
    pub(crate) fn start(count: usize) -> io::Result<Self> {
        let end = CancellationToken::new();
        let (mut members, mut threads) = (Vec::new(), Vec::new());
        for number in 0..count {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            members.push(runtime.handle().clone());
            let end = end.clone();
            let thread = std::thread::Builder::new().name(format!("frazil-serve-{number}"));
            threads.push(thread.spawn(move || runtime.block_on(end.cancelled()))?);
        }
        Ok(Self { members, threads, turn: AtomicUsize::new(0), end: end.drop_guard() })
    }

    /// Serves a connection on the thread whose turn it is.
    pub(crate) fn serve<F>(
        &self,
        shutdown: &Shutdown,
        stream: TcpStream,
        serve: impl FnOnce(TcpStream) -> F + Send + 'static,
    ) where
        F: Future<Output = ()> + Send + 'static,
    {
        if self.members.is_empty() {
            let (cut, served) = (shutdown.cut.clone(), serve(stream));
            shutdown.connections.spawn(async move {
                cut.run_until_cancelled(served).await;
            });
            return;
        }
        // Relaxed: who exactly comes next does not matter.
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let Ok(stream) = stream.into_std() else { return };
        let served = async move {
            // Registered anew, with that thread's own poll.
            match TcpStream::from_std(stream) {
                Ok(stream) => serve(stream).await,
                Err(error) => {
                    tracing::warn!(%error, "closed a connection: it could not be handed to its thread")
                }
            }
        };
        shutdown.connections.spawn_on(served, &self.members[turn % self.members.len()]);
    }

    /// Ends the threads, with whatever they still serve.
    pub(crate) async fn end(self) {
        let Self { threads, end, .. } = self;
        drop(end);
        let joined = tokio::task::spawn_blocking(move || {
            for thread in threads {
                // One that panicked is over too.
                let _ = thread.join();
            }
        });
        let _ = joined.await;
    }
}
