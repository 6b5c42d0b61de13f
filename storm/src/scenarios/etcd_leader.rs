//! E13b: the leader of three members of etcd is killed, and comes back.
//!
//! Nodes go on until their horizon, which is the outage budget after the last renewal. An election
//! takes less as a rule; if it does not, requests are refused until there are renewals again.

use std::io;
use std::time::Duration;

use crate::clock;
use crate::history::{Outcome, RequestRecord};
use crate::scenario::{Play, Scenario, was_worth_it};
use crate::stage::{Outcomes, Participants, Plan, Stage};
use crate::store::{Kind, Setting};

const CYCLES: u32 = 10;
const NODES: usize = 3;
/// Until the killed member is started again.
const DOWN: Duration = Duration::from_secs(2);
/// What a node says beyond its horizon: to be tried again.
const REASON: &str = "HORIZON_REACHED";
/// How long nodes may say so, when an election takes longer than they go on.
const REFUSES: Duration = Duration::from_millis(500);
/// A renewal may have begun before a member is gone and come late.
const LATE: Duration = Duration::from_millis(200);

pub(crate) const ROW: Scenario = Scenario {
    id: "E13b",
    title: "etcd loses its leader",
    stores: &[Kind::Etcd],
    play: Play::Nodes { participants, act, judge },
};

fn participants(_: &Plan) -> Participants {
    Participants { nodes: NODES, setting: Setting::Several, ..Participants::default() }
}

fn act(stage: &mut Stage) -> io::Result<()> {
    let (mut replaced, mut slowest) = (0, Duration::ZERO);
    let mut seen = Observed::default();
    // A fail-over is short: two at least.
    let cycles = stage.cycles(CYCLES).max(2);
    for _ in 0..cycles {
        if !stage.goes_on() {
            break;
        }
        let quiet = stage.between(Duration::ZERO, Duration::from_secs(1));
        stage.rest(quiet);
        let begin = clock::now();
        let killed = stage.store.members()?.kill_leader()?;
        // Nothing is written until the others have elected one of them.
        let (gone, before) = (clock::now(), renewals(stage));
        frazil_rig::wait_until("renewals without it", Duration::from_secs(20), || {
            renewals(stage).iter().zip(&before).all(|(now, before)| now > before)
                || !stage.goes_on()
        })?;
        slowest = slowest.max(clock::now() - gone);
        let leader = stage.store.members()?.leader_index()?;
        replaced += u64::from(leader != killed);
        let left = DOWN.saturating_sub(clock::now() - gone);
        stage.rest(left);
        let member = stage.store.members()?.node(killed);
        member.launch()?;
        member.wait_ready()?;
        stage.record_fault(format!("leader {killed} killed"), None, begin);
        let horizon = gone + stage.lease.budget.saturating_sub(stage.lease.heartbeat + LATE);
        for node in 0..NODES {
            seen.look(&stage.load.record.between(node, begin, clock::now()), horizon);
        }
    }
    stage.verdict.guard("leaders seen replaced", replaced, cycles.into());
    stage.verdict.bar("its end to renewals by all", slowest, Duration::from_secs(2));
    stage.verdict.bar("longest refusal", seen.longest, REFUSES);
    let Observed { asked, refused, early, strange, .. } = seen;
    stage.verdict.note("requests refused", format!("{refused} of {asked}"));
    stage.verdict.hold("goes on until the horizon", early.is_none(), || {
        format!("refused although the horizon was not there yet: {early:?}")
    });
    stage.verdict.hold("served or told to come back", strange.is_none(), || {
        format!("a request ended with {strange:?}")
    });
    Ok(())
}

/// What clients saw of the loss of a leader.
#[derive(Debug, Default)]
struct Observed {
    asked: u64,
    refused: u64,
    /// The first that was refused before its time.
    early: Option<RequestRecord>,
    /// The first that had no answer, or not the one that is documented.
    strange: Option<RequestRecord>,
    /// From the first refusal of a node to the next IDs.
    longest: Duration,
}

impl Observed {
    /// Looks at the requests to one node, whose horizon is not before a moment.
    fn look(&mut self, marks: &[RequestRecord], horizon: Duration) {
        self.asked += marks.len() as u64;
        let mut marks: Vec<&RequestRecord> = marks.iter().collect();
        marks.sort_by_key(|mark| mark.answered);
        let mut since = None;
        for mark in marks {
            match &mark.outcome {
                Outcome::Ids(_) => since = None,
                Outcome::Refused(reason) if reason == REASON => {
                    self.refused += 1;
                    if mark.answered < horizon {
                        self.early.get_or_insert_with(|| mark.clone());
                    }
                    let first = *since.get_or_insert(mark.asked);
                    self.longest = self.longest.max(mark.answered - first);
                }
                _ => drop(self.strange.get_or_insert_with(|| mark.clone())),
            }
        }
    }
}

fn renewals(stage: &Stage) -> Vec<u64> {
    let of = |node: &crate::node::Node| node.metric("frazil_lease_renew_duration_seconds_count");
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a counter")]
    stage.nodes.iter().map(|node| of(node).unwrap_or(0.0) as u64).collect()
}

fn judge(plan: &Plan, outcomes: &mut Outcomes) {
    was_worth_it(plan, outcomes);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(marks: &[(u64, Outcome)]) -> Observed {
        let mark = |(ms, outcome): &(u64, Outcome)| {
            let (asked, answered) = (Duration::from_millis(*ms), Duration::from_millis(ms + 1));
            RequestRecord { asked, answered, outcome: outcome.clone() }
        };
        let mut seen = Observed::default();
        let horizon = Duration::from_millis(2500);
        seen.look(&marks.iter().map(mark).collect::<Vec<_>>(), horizon);
        seen
    }

    fn refused(reason: &str) -> Outcome {
        Outcome::Refused(reason.to_owned())
    }

    #[test]
    fn refusals_are_for_nodes_beyond_their_horizon() {
        let fine = seen(&[(0, Outcome::Ids(1)), (2600, refused(REASON)), (2700, Outcome::Ids(1))]);
        assert!(fine.early.is_none() && fine.strange.is_none(), "{fine:?}");
        assert_eq!((fine.asked, fine.refused), (3, 1));
        assert!(seen(&[(1000, refused(REASON))]).early.is_some());
        for outcome in [Outcome::Lost, refused("NO_WORKER"), refused("HTTP 500")] {
            assert!(seen(&[(2600, outcome)]).strange.is_some());
        }
    }

    #[test]
    fn a_refusal_lasts_until_there_are_ids_again() {
        let turns = [(2600, refused(REASON)), (3600, refused(REASON)), (3700, Outcome::Ids(1))];
        assert_eq!(seen(&turns).longest, Duration::from_millis(1001));
        let apart = [(2600, refused(REASON)), (2700, Outcome::Ids(1)), (3600, refused(REASON))];
        assert_eq!(seen(&apart).longest, Duration::from_millis(1));
    }
}
