//! The same node for code that blocks.

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

/// A [`Node`](crate::Node) with a thread of its own for its leases. Dropping it shuts it down and
/// waits for that; in a forked child it does nothing, as the node is the parent's.
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// # let store = format!("file:{}", directory.path().display());
/// let node = frazil::blocking::Node::start(frazil::Node::builder().store(&store)?)?;
/// assert!(node.next()? < node.next()?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Node {
    node: crate::Node,
    /// `None` while it is dropped.
    runtime: Option<Runtime>,
}

impl Node {
    /// Starts a node. Must not be called from async code.
    ///
    /// # Errors
    /// As for [`Builder::start`]; and if the thread cannot be started.
    pub fn start(builder: Builder) -> Result<Self, StartError> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("frazil-leases")
            .enable_all()
            .build()
            .map_err(StartError::Thread)?;
        let node = runtime.block_on(builder.start())?;
        Ok(Self { node, runtime: Some(runtime) })
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
        let runtime = self.runtime.as_ref().ok_or(NotRotated::Ended)?;
        runtime.block_on(self.node.rotate(worker, patience))
    }

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

impl Drop for Node {
    fn drop(&mut self) {
        let Some(runtime) = self.runtime.take() else { return };
        if self.node.is_copy() {
            // Its threads are the parent's: to end it would wait for them for ever.
            return std::mem::forget(runtime);
        }
        runtime.block_on(self.node.shutdown());
    }
}
