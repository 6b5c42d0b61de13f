//! E06: a node is cut off from the store, both ways or so that only answers are lost, while another
//! one wants its worker.

use std::io;
use std::time::Duration;

use crate::clock;
use crate::scenario::{Play, Scenario, was_worth_it};
use crate::stage::{Cast, Outcomes, Plan, Stage};
use crate::store::Kind;

/// Of each kind.
const CYCLES: u32 = 20;
const WORKERS: usize = 3;
const CUT_OFF: Duration = Duration::from_secs(5);
/// A node may go on for the budget after its last renewal; this is for the answer to arrive.
const SLACK: Duration = Duration::from_millis(500);

pub(crate) const ROW: Scenario = Scenario {
    id: "E06",
    title: "cut off from the store",
    stores: &Kind::SERVERS,
    play: Play::Nodes { cast, act, judge },
};

/// As many workers as there are nodes at first; the last node waits for its part.
fn cast(_: &Plan) -> Cast {
    Cast { nodes: WORKERS + 1, workers: WORKERS as u64, ..Cast::default() }
}

#[derive(Clone, Copy, Debug)]
enum Cut {
    BothWays,
    Answers,
}

fn act(stage: &mut Stage) -> io::Result<()> {
    let (mut longest, mut slowest, mut dropped) = (Duration::ZERO, Duration::ZERO, 0);
    for cycle in 0..2 * stage.cycles(CYCLES) {
        if !stage.goes_on() {
            break;
        }
        let cut = if cycle % 2 == 0 { Cut::BothWays } else { Cut::Answers };
        let victim = stage.any_serving()?;
        let begin = clock::now();
        dropped += apart(stage, victim, cut)?;
        stage.was(format!("{cut:?} lost"), Some(victim), begin);
        if let Some(last) = stage.load.record.last_answer(victim, clock::now()) {
            longest = longest.max(last.saturating_sub(begin));
        }
        slowest = slowest.max(healed(stage, victim)?);
    }
    let budget = stage.lease.budget;
    stage.verdict.hold("stops by itself", longest <= budget + SLACK, || {
        format!("a node issued for {longest:?} after it was cut off; its budget is {budget:?}")
    });
    stage.verdict.note("longest service without the store", format!("{longest:?}"));
    stage.verdict.guard("bytes lost on the way", dropped, 1);
    stage.verdict.bar("heal to three nodes that issue", slowest, Duration::from_secs(1));
    Ok(())
}

/// Cuts a node off for a while; how many bytes were lost or held back.
fn apart(stage: &mut Stage, victim: usize, cut: Cut) -> io::Result<u64> {
    let proxy = stage.nodes[victim].link.proxy.as_ref();
    let proxy = proxy.ok_or_else(|| io::Error::other("no network to cut"))?;
    let up = proxy.bytes_up();
    match cut {
        Cut::BothWays => proxy.black_hole(),
        Cut::Answers => proxy.drop_replies(),
    }
    stage.rest(CUT_OFF);
    let proxy = stage.nodes[victim].link.proxy.as_ref();
    let lost = proxy.map_or(0, |proxy| match cut {
        // Nothing got through: that is what was to be seen.
        Cut::BothWays => u64::from(proxy.bytes_up() == up),
        Cut::Answers => proxy.bytes_dropped(),
    });
    Ok(lost)
}

/// Heals the link; how long until as many issue as there are workers.
fn healed(stage: &mut Stage, victim: usize) -> io::Result<Duration> {
    if let Some(proxy) = &stage.nodes[victim].link.proxy {
        proxy.heal();
    }
    stage.all_serve(WORKERS, clock::now())
}

fn judge(plan: &Plan, outcomes: &mut Outcomes) {
    was_worth_it(plan, outcomes);
    let faults = outcomes.faults.len() as u64;
    outcomes.verdict.guard("tenures", outcomes.counts.tenures, 3 + faults.div_ceil(2));
}
