//! What scenarios look at while they play.

use std::io;
use std::time::Duration;

use frazil_rig::wait_until;

use super::{ISSUES, Stage};
use crate::clock;
use crate::node::Node;

impl Stage {
    /// Waits until so many nodes answer requests that were sent from a moment on; how long that took.
    pub(crate) fn all_serve(&self, nodes: usize, since: Duration) -> io::Result<Duration> {
        let what = format!("{nodes} nodes to issue");
        wait_until(&what, ISSUES, || {
            let answers = |node: &usize| self.load.record.first_answer(*node, since).is_some();
            (0..self.nodes.len()).filter(answers).count() >= nodes || !self.goes_on()
        })?;
        Ok(clock::now() - since)
    }

    /// Leases that nodes have noticed the loss of, each; 0 for one that does not answer.
    pub(crate) fn losses(&self) -> Vec<u64> {
        let losses = |node: &Node| node.metric("frazil_lease_lost_total").unwrap_or(0.0);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a counter")]
        self.nodes.iter().map(|node| losses(node) as u64).collect()
    }

    /// The latest time since 1970 that any of these nodes may use.
    pub(crate) fn promised(&self, nodes: &[usize]) -> io::Result<Duration> {
        let mut latest = 0.0_f64;
        for &node in nodes {
            latest = latest.max(self.nodes[node].metric("frazil_horizon_timestamp_seconds")?);
        }
        Ok(Duration::from_secs_f64(latest))
    }
}
