//! The same node for code that blocks.

use std::io;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use frazil_id::{Batch, Id};
use tokio::runtime::Runtime;

use crate::builder::Builder;
use crate::info::NodeInfo;
use crate::node::NotIssued;
use crate::rotation::{Moved, NotRotated};
use crate::start_error::StartError;
use crate::waits::Waits;

/// A [`Node`](crate::Node) with a thread of its own for its leases. It may be used within a runtime,
/// too, where it blocks as it does elsewhere. Dropping it shuts it down and waits for that; in a
/// forked child it does nothing, as the node is the parent's.
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// # let store = format!("file:{}", directory.path().display());
/// let node = frazil::blocking::Node::start(frazil::Node::builder().store(&store))?;
/// assert!(node.next()? < node.next()?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Node {
    node: crate::Node,
    engine: Engine,
}

/// The thread, which is not waited for: whoever is within a runtime may not.
#[derive(Debug)]
struct Engine(Option<Runtime>);

impl Node {
    /// Starts a node.
    ///
    /// # Errors
    /// As for [`Builder::start`]; and if the thread cannot be started.
    pub fn start(builder: Builder) -> Result<Self, StartError> {
        let engine = Engine::start().map_err(StartError::Thread)?;
        let gone = || StartError::Thread(io::Error::other("it ended while the node started"));
        let node = engine.run(builder.start()).ok_or_else(gone)??;
        Ok(Self { node, engine })
    }

    /// See [`Node::next`](crate::Node::next).
    ///
    /// # Errors
    /// What does not pass by itself soon.
    pub fn next(&self) -> Result<Id, NotIssued> {
        self.waiting(|| self.node.try_next())
    }

    /// See [`Node::batch`](crate::Node::batch).
    ///
    /// # Errors
    /// What does not pass by itself soon.
    pub fn batch(&self, n: u32) -> Result<Batch, NotIssued> {
        let mut partly = None;
        self.waiting(|| self.node.try_fill(&mut partly, n)).map(|issued| issued.batch)
    }

    /// See [`Node::rotate`](crate::Node::rotate).
    ///
    /// # Errors
    /// Why nothing has moved.
    pub fn rotate(
        &self,
        worker: Option<u32>,
        patience: Duration,
    ) -> Result<Vec<Moved>, NotRotated> {
        // In a forked child the thread that would drive it is not there.
        if self.node.is_copy() {
            return Err(NotRotated::Forked);
        }
        let node = self.node.clone();
        let rotating = async move { node.rotate(worker, patience).await };
        self.engine.run(rotating).unwrap_or(Err(NotRotated::Ended))
    }

    /// Ends issuing, releases the workers and waits until that is done, as dropping it does.
    pub fn shutdown(self) {}

    /// See [`Node::info`](crate::Node::info).
    #[must_use]
    pub fn info(&self) -> NodeInfo {
        self.node.info()
    }

    fn waiting<T>(&self, mut ask: impl FnMut() -> Result<T, NotIssued>) -> Result<T, NotIssued> {
        let mut waits = Waits::default();
        loop {
            match ask() {
                Err(why) => pause(waits.next(&self.node, why)?),
                issued => return issued,
            }
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the blocking facade")]
fn pause(wait: Duration) {
    thread::sleep(wait);
}

impl Engine {
    fn start() -> io::Result<Self> {
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        runtime.worker_threads(1).thread_name("frazil-leases").enable_all();
        Ok(Self(Some(runtime.build()?)))
    }

    /// Runs a call in the thread, and blocks until it is done. `None`: it did not come to an end.
    fn run<T: Send + 'static>(&self, call: impl Future<Output = T> + Send + 'static) -> Option<T> {
        let (send, receive) = mpsc::sync_channel(1);
        self.0.as_ref()?.spawn(async move {
            let _ = send.send(call.await);
        });
        receive.recv().ok()
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if self.node.is_copy() {
            // Its threads are the parent's: to end it would wait for them for ever.
            return std::mem::forget(self.engine.0.take());
        }
        let node = self.node.clone();
        self.engine.run(async move { node.shutdown().await });
    }
}
