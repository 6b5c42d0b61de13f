//! The condition of a node: pure judgement of what is known about it.

use std::time::Duration;

use frazil::coord::internal::keeper::repair_command;
use frazil::coord::{LeaseState, Waiting};
use frazil::{NodeInfo, NotIssued};

/// The states of a node. They drive readiness, metrics and logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NodeState {
    /// It has issued nothing yet.
    Starting,
    /// All is well.
    Ready,
    /// It issues, but something is wrong that will end this unless it is repaired.
    Degraded,
    /// It cannot issue.
    Refusing,
    /// It is on its way out: it still issues, and wants no new clients.
    Draining,
    /// It is over.
    Stopped,
}

impl NodeState {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Starting,
        Self::Ready,
        Self::Degraded,
        Self::Refusing,
        Self::Draining,
        Self::Stopped,
    ];

    /// The state in a word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Ready => "ready",
            Self::Degraded => "degraded",
            Self::Refusing => "refusing",
            Self::Draining => "draining",
            Self::Stopped => "stopped",
        }
    }

    /// Whether clients should come here.
    #[must_use]
    pub const fn is_ready(self) -> bool {
        matches!(self, Self::Ready | Self::Degraded)
    }
}

/// A state with its reason.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Condition {
    /// The state.
    pub state: NodeState,
    /// Why it is not ready, if so.
    pub reason: Option<String>,
    /// How long the node can go on without its store.
    pub left: Duration,
}

impl Condition {
    pub(crate) fn new(state: NodeState, reason: Option<String>) -> Self {
        Self { state, reason, left: Duration::ZERO }
    }

    /// Judges a node that is not draining.
    pub(crate) fn of(info: &NodeInfo, check: Result<(), NotIssued>, has_issued: bool) -> Self {
        let (state, reason) = match check {
            Err(why) if !is_brief(&why) && !is_held_up(info, &why) => {
                let refused = if has_issued { NodeState::Refusing } else { NodeState::Starting };
                (refused, Some(described(info, &why)))
            }
            _ => match trouble(info) {
                None => (NodeState::Ready, None),
                Some(trouble) => (NodeState::Degraded, Some(trouble)),
            },
        };
        Self { state, reason, left: info.left() }
    }
}

/// Whether it passes by itself, while requests wait.
const fn is_brief(why: &NotIssued) -> bool {
    matches!(why, NotIssued::NotReady(why) if why.is_brief())
}

/// Whether of a lease that is in order more was acknowledged than its lane uses yet.
fn is_held_up(info: &NodeInfo, why: &NotIssued) -> bool {
    let NotIssued::NotReady(frazil_id::NotReady::Horizon { horizon }) = why else { return false };
    let next = info.layout.unix_ms(horizon.saturating_add(1));
    info.lanes.iter().any(|lane| {
        let granted = lane.status.grant.map_or(0, |grant| grant.horizon);
        lane.status.state == LeaseState::Held && granted >= next
    })
}

/// What is wrong with a lane that issues all the same. A lane that is only looking for its first
/// worker is an addition still to come.
fn trouble(info: &NodeInfo) -> Option<String> {
    let lane = info
        .lanes
        .iter()
        .find(|lane| !matches!(lane.status.state, LeaseState::Held | LeaseState::Seeking(_)))?;
    let seconds = info.left().as_secs();
    Some(format!("{}; IDs go on for {seconds} s", lane_text(lane)))
}

/// Why nothing is issued: the lease knows more than the generator.
fn described(info: &NodeInfo, why: &NotIssued) -> String {
    match (why, info.lanes.first()) {
        (NotIssued::NotReady(frazil_id::NotReady::Horizon { .. }), Some(lane)) => {
            format!("the horizon is reached: {}", lane_text(lane))
        }
        (NotIssued::NoWorker(LeaseState::Seeking(Waiting::WrongTimes { .. })), Some(lane)) => {
            format!("{}: {}", lane_text(lane), repair_command(&info.store, Some(&info.namespace)))
        }
        (NotIssued::NoWorker(_), Some(lane)) => lane_text(lane),
        _ => format!("{why:#}"),
    }
}

fn lane_text(lane: &frazil::LaneInfo) -> String {
    match &lane.status.trouble {
        Some(trouble) => format!("{}: {trouble:#}", lane.status.state),
        None => lane.status.state.to_string(),
    }
}
