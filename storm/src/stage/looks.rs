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

    /// The latest time since 1970 that any of these nodes may use, all of which hold a worker or have
    /// just lost one. That a node says nothing of it does not mean that it was promised nothing.
    pub(crate) fn promised(&self, nodes: &[usize]) -> io::Result<Duration> {
        let mut latest = Duration::ZERO;
        for &node in nodes {
            let told = self.nodes[node].metric_if_any("frazil_horizon_timestamp_seconds")?;
            latest = latest.max(horizon(node, told)?);
        }
        Ok(latest)
    }
}

fn horizon(node: usize, told: Option<f64>) -> io::Result<Duration> {
    match told {
        Some(seconds) if seconds > 0.0 => {
            Duration::try_from_secs_f64(seconds).map_err(io::Error::other)
        }
        told => Err(io::Error::other(format!(
            "node {node} may use times, and said {told:?} when asked up to which: what was promised \
             is not known"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_horizon_that_is_not_told_is_no_horizon_of_zero() {
        assert_eq!(horizon(0, Some(1.5)).unwrap(), Duration::from_millis(1500));
        for told in [None, Some(0.0), Some(-1.0), Some(f64::NAN), Some(f64::INFINITY)] {
            assert!(horizon(0, told).is_err(), "{told:?}");
        }
    }
}
