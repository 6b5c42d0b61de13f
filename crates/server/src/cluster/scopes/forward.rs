//! Forwarding: requests for a strict scope that another node leads.
//!
//! A node asks the leader of a scope for one answer at a time, for all the requests that wait at
//! that moment: however many they are, they cost the leader one request. So answers arrive in the order in
//! which they were asked for, and every one must be above the one before.

mod queue;

use std::sync::Arc;
use std::time::Duration;

use frazil::coord::internal::time::{boot_time, unix_ms};
use frazil::coord::{Token, UnixMs};
use frazil::{Batch, Node};
use frazil_id::Layout;
use frazil_wire::{ApiError, Reason};

pub(super) use self::queue::Forwards;
use self::queue::{ForwardTask, Waiter};
use super::issue::{Attempt, AttemptError, LOOK_AGAIN, RETRY};
use super::{Leader, StrictScope};
use crate::cluster::peers::{
    Expected, ForwardError, ForwardRequest, LeaderAnswer, Peers, PeersError, Times, check,
};
use crate::config::Config;
use crate::issuer::{Issuer, before};
use crate::policy::admission::{IssuedIds, IssuingNode};
use crate::policy::queue::{Count, too_late};

/// How nodes that lead strict scopes are asked.
#[derive(Debug)]
pub(crate) struct Forwarder {
    pub(super) peers: Peers,
    layout: Layout,
    max_ahead_ms: u64,
    /// The most IDs that several requests are asked for together: no more than a leader has at once.
    together_max: u32,
}

/// What one request to a leader brought, for all who waited for it.
struct LeaderBatch {
    answer: LeaderAnswer,
    worker: u32,
}

impl Forwarder {
    pub(crate) fn new(config: &Config) -> Result<Self, PeersError> {
        let max_ahead = config.node.chosen_options().max_ahead.as_millis();
        let layout = *config.node.chosen_layout();
        let per_tick = u32::try_from(layout.ids_per_tick()).unwrap_or(u32::MAX);
        Ok(Self {
            peers: Peers::new(config)?,
            layout,
            together_max: per_tick.min(config.limits.max_count),
            max_ahead_ms: u64::try_from(max_ahead).unwrap_or(u64::MAX),
        })
    }

    /// Joins those who wait for the leader, and asks it for all of them if nobody does.
    pub(super) async fn forward(
        self: &Arc<Self>,
        issuer: &Issuer,
        strict: &Arc<StrictScope>,
        attempt: Attempt,
    ) -> Result<IssuedIds, AttemptError> {
        let Attempt { issue_request, deadline, .. } = attempt;
        let now = issuer.node().map_or_else(unix_ms, Node::now_ms);
        // What may be a part is asked for as one.
        let count = match issue_request.count {
            Count::Exactly(count) => count,
            Count::UpTo(count) => count.min(self.together_max),
        };
        let (waiter, answer) = Waiter::new(count, attempt, now);
        let most = issuer.limits().max_waiting;
        if let Some(asking) =
            strict.forwards.join(waiter, strict, most).map_err(AttemptError::Final)?
        {
            // A task of its own: whoever happens to come first may go before others are answered.
            tokio::spawn(self.clone().ask_for_all(strict.clone(), asking));
        }
        match before(deadline, answer).await {
            Some(Ok(answered)) => answered,
            Some(Err(_)) => {
                Err(moved("the leader was being asked, and nobody waits for its answer"))
            }
            None => {
                let scope = &strict.name;
                let why = format_args!("the leader of the scope {scope} did not answer in time");
                Err(AttemptError::Final(too_late(why)))
            }
        }
    }

    /// Asks until nobody waits any more.
    async fn ask_for_all(self: Arc<Self>, strict: Arc<StrictScope>, mut asking: ForwardTask) {
        while let Some(group) = asking.next_group(self.together_max) {
            self.answer(&strict, group).await;
        }
    }

    /// Asks once for a group. If that is more than the leader gives at once, for each alone.
    async fn answer(&self, strict: &StrictScope, group: Vec<Waiter>) {
        match self.ask(strict, &group).await {
            Ok(leader_batch) => self.hand_out(leader_batch, group),
            Err(AttemptError::Final(error))
                if error.reason == Reason::CountOutOfRange && group.len() > 1 =>
            {
                for waiter in group {
                    let alone = vec![waiter];
                    match self.ask(strict, &alone).await {
                        Ok(leader_batch) => self.hand_out(leader_batch, alone),
                        Err(miss) => refuse(alone, &miss),
                    }
                }
            }
            Err(miss) => refuse(group, &miss),
        }
    }

    async fn ask(
        &self,
        strict: &StrictScope,
        group: &[Waiter],
    ) -> Result<LeaderBatch, AttemptError> {
        let leader = strict.leader.borrow().clone();
        let Some((leader, base)) = leader.as_ref().and_then(|leader| {
            let base = leader.advertise.as_deref().filter(|_| !leader.is_here)?;
            Some((leader, base))
        }) else {
            return Err(moved(format_args!("the leader of the scope {} changes", strict.name)));
        };
        strict.forwards.check_back_off(leader.token, group.iter().all(|waiter| waiter.is_again))?;
        let deadline = group.iter().map(|waiter| waiter.deadline).max().unwrap_or_default();
        let count = group.iter().map(|waiter| waiter.count).sum();
        let patience = deadline.saturating_sub(boot_time());
        let request = ForwardRequest { scope: &strict.name, count, patience };
        let asked = tokio::select! {
            biased;
            asked = before(deadline, self.peers.ask(base, request, &self.layout)) => asked,
            // It may never answer.
            () = strict.moved_on(Some(leader.token)) => {
                return Err(moved(format_args!("{} does not lead any more", leader.node)));
            }
        };
        let outcome = match asked {
            None => {
                let why = format_args!("{base} did not answer in time");
                Err(AttemptError::Final(too_late(why)))
            }
            Some(Ok(answer)) => self.believed(strict, leader, group, answer),
            Some(Err(ForwardError::Unreachable(why))) => {
                tracing::warn!(
                    scope = strict.name,
                    leader = base,
                    why,
                    "cannot reach the leader of a scope: check the address that it advertises, and the network"
                );
                Err(moved(format_args!("the leader of the scope {}, {why}", strict.name)))
            }
            Some(Err(ForwardError::Refused(error))) => Err(refused(base, error, group.len())),
        };
        strict.forwards.note(leader.token, outcome.as_ref().err());
        outcome
    }

    /// What is in an answer, if the leader can have issued it.
    fn believed(
        &self,
        strict: &StrictScope,
        leader: &Leader,
        group: &[Waiter],
        answer: LeaderAnswer,
    ) -> Result<LeaderBatch, AttemptError> {
        let expected = Expected {
            layout: &self.layout,
            node: &leader.node,
            leader_token: leader.token,
            count: group.iter().map(|waiter| waiter.count).sum(),
            above: strict.forwards.last(),
            times: times(group, self.max_ahead_ms),
        };
        let (batch, last) = check(&answer, &expected).map_err(|why| {
            let (scope, leader) = (&strict.name, &leader.node);
            tracing::error!(
                scope,
                leader,
                %why,
                "rejected an answer of a scope's leader: a leader cannot have issued these IDs"
            );
            moved(format_args!("the answer of {leader}, who leads the scope {scope}: {why}"))
        })?;
        strict.forwards.raise(last);
        let worker = batch.ends().and_then(|(first, _)| first.parts(&self.layout).ok());
        let worker =
            worker.map_or(u32::MAX, |parts| u32::try_from(parts.worker).unwrap_or(u32::MAX));
        Ok(LeaderBatch { answer, worker })
    }

    /// Gives each of a group as many as it asked for.
    fn hand_out(&self, leader_batch: LeaderBatch, group: Vec<Waiter>) {
        let LeaderBatch { answer, worker } = leader_batch;
        let mut ids = answer.ids.iter().copied();
        for waiter in group {
            let own = ids.by_ref().take(waiter.count as usize);
            let Some(batch) = Batch::from_ids(&self.layout, own) else { continue };
            let (node, region) = (answer.node.clone(), answer.region.clone());
            let (token, issuing_node) = (Token(answer.token), Some(IssuingNode { node, region }));
            waiter.answer(Ok(IssuedIds { batch, worker, token, issuing_node, left: None }));
        }
    }
}

/// The times that an answer to a group can have: from when its last member came until now.
fn times(group: &[Waiter], max_ahead_ms: u64) -> Times {
    let boot = boot_time();
    let now = |waiter: &Waiter| {
        let since = boot.saturating_sub(waiter.came).as_millis();
        waiter.now.saturating_add(u64::try_from(since).unwrap_or(u64::MAX))
    };
    let asked: UnixMs = group.iter().map(|waiter| waiter.now).max().unwrap_or_default();
    let answered = group.iter().map(now).max().unwrap_or_default();
    Times::between(asked, answered, max_ahead_ms)
}

fn refuse(group: Vec<Waiter>, miss: &AttemptError) {
    for waiter in group {
        waiter.answer(Err(miss.clone()));
    }
}

fn moved(why: impl std::fmt::Display) -> AttemptError {
    AttemptError::Moved(ApiError::new(Reason::NoLeader, why).retry_after(RETRY))
}

/// What the leader's refusal of so many requests together means for whoever asked this node.
fn refused(base: &str, error: ApiError, requests: usize) -> AttemptError {
    match error.reason {
        Reason::NoLeader | Reason::Draining => AttemptError::Moved(error),
        // It is this node that was not let in, and not its client.
        Reason::Unauthenticated | Reason::Forbidden | Reason::QuotaExceeded => {
            tracing::error!(
                leader = base,
                %error,
                "the leader of a scope refuses this node's key: check --peer-key-file"
            );
            let detail = format_args!(
                "the leader, {base}, refuses this node's key: check --peer-key-file ({error})"
            );
            AttemptError::Final(ApiError::new(Reason::NoLeader, detail).retry_after(RETRY))
        }
        // This node's limits allow the request, so its client asks nothing wrong. Several together are
        // asked for one by one.
        Reason::CountOutOfRange if requests == 1 => {
            tracing::error!(
                leader = base,
                %error,
                "the leader of a scope gives this node fewer IDs at once than a client of this node may ask \
                 for: remove the quota of the key in --peer-key-file, and give all nodes the same --max-count"
            );
            let detail = format_args!(
                "the leader, {base}, does not give this node so many IDs at once: check the quota of the key \
                 in --peer-key-file, and --max-count of the leader ({error})"
            );
            AttemptError::Final(ApiError::new(Reason::NoLeader, detail).retry_after(RETRY))
        }
        _ => AttemptError::Final(error),
    }
}

/// The first pause before a leader that failed is asked again, and the longest.
pub(super) const BACK_OFF: std::ops::RangeInclusive<Duration> = LOOK_AGAIN..=Duration::from_secs(1);
