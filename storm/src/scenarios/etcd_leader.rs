//! E13b: the leader of three members of etcd is killed, and comes back.

use std::io;
use std::time::Duration;

use crate::clock;
use crate::scenario::{Play, Scenario, was_worth_it};
use crate::stage::{Cast, Outcomes, Plan, Stage};
use crate::store::{Kind, Setting};

const CYCLES: u32 = 10;
const NODES: usize = 3;
/// Until the killed member is started again.
const DOWN: Duration = Duration::from_secs(2);

pub(crate) const ROW: Scenario = Scenario {
    id: "E13b",
    title: "etcd loses its leader",
    stores: &[Kind::Etcd],
    play: Play::Nodes { cast, act, judge },
};

fn cast(_: &Plan) -> Cast {
    Cast { nodes: NODES, setting: Setting::Several, ..Cast::default() }
}

fn act(stage: &mut Stage) -> io::Result<()> {
    let (mut replaced, mut slowest) = (0, Duration::ZERO);
    let (mut asked, mut failed) = (0, 0);
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
        stage.was(format!("leader {killed} killed"), None, begin);
        for node in 0..NODES {
            let marks = stage.load.record.between(node, begin, clock::now());
            asked += marks.len() as u64;
            failed += marks.iter().filter(|mark| mark.ids() == 0).count() as u64;
        }
    }
    stage.verdict.guard("leaders seen replaced", replaced, cycles.into());
    stage.verdict.bar("its end to renewals by all", slowest, Duration::from_secs(2));
    // An election takes less than the budget: nobody stops.
    stage.verdict.hold("goes on without it", failed == 0, || {
        format!("{failed} of {asked} requests failed while a majority was there")
    });
    Ok(())
}

fn renewals(stage: &Stage) -> Vec<u64> {
    let of = |node: &crate::node::Node| node.metric("frazil_lease_renew_duration_seconds_count");
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a counter")]
    stage.nodes.iter().map(|node| of(node).unwrap_or(0.0) as u64).collect()
}

fn judge(plan: &Plan, outcomes: &mut Outcomes) {
    was_worth_it(plan, outcomes);
}
