//! E06: a node is cut off from the store, both ways or so that only answers are lost, while another
//! one wants its worker.

use std::io;
use std::time::Duration;

use crate::clock;
use crate::scenario::{Play, Scenario, was_worth_it, went_on};
use crate::stage::{Outcomes, Participants, Plan, Stage};
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
    play: Play::Nodes { participants, act, judge },
};

/// As many workers as there are nodes at first; the last node waits for its part.
fn participants(_: &Plan) -> Participants {
    Participants { nodes: WORKERS + 1, workers: WORKERS as u64, ..Participants::default() }
}

#[derive(Clone, Copy, Debug)]
enum Cut {
    BothWays,
    Answers,
}

fn act(stage: &mut Stage) -> io::Result<()> {
    let (mut longest, mut slowest) = (Duration::ZERO, Duration::ZERO);
    let (mut cuts, mut seen, mut felt) = (0, 0, 0);
    for cycle in 0..2 * stage.cycles(CYCLES) {
        if !stage.goes_on() {
            break;
        }
        let cut = if cycle % 2 == 0 { Cut::BothWays } else { Cut::Answers };
        let victim = stage.any_serving()?;
        let begin = clock::now();
        cuts += 1;
        seen += u64::from(apart(stage, victim, cut)?);
        let marks = stage.load.record.between(victim, begin, clock::now());
        felt += u64::from(marks.iter().any(|mark| mark.ids() == 0));
        stage.record_fault(format!("{cut:?} lost"), Some(victim), begin);
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
    stage.verdict.guard("cuts that the proxy made", seen, cuts);
    stage.verdict.guard("nodes that stopped meanwhile", felt, cuts);
    stage.verdict.bar("heal to three nodes that issue", slowest, Duration::from_secs(1));
    Ok(())
}

/// Cuts a node off for a while; whether nothing got through.
fn apart(stage: &mut Stage, victim: usize, cut: Cut) -> io::Result<bool> {
    let no_network = || io::Error::other("no network to cut");
    let proxy = stage.nodes[victim].link.proxy.as_ref().ok_or_else(no_network)?;
    match cut {
        Cut::BothWays => proxy.black_hole(),
        Cut::Answers => proxy.drop_replies(),
    }
    let (up, down, dropped) = (proxy.bytes_up(), proxy.bytes_down(), proxy.bytes_dropped());
    stage.rest(CUT_OFF);
    let proxy = stage.nodes[victim].link.proxy.as_ref().ok_or_else(no_network)?;
    let nothing_came = proxy.bytes_down() == down;
    Ok(match cut {
        Cut::BothWays => nothing_came && proxy.bytes_up() == up,
        Cut::Answers => nothing_came && proxy.bytes_dropped() > dropped,
    })
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
    went_on(outcomes);
    let faults = outcomes.faults.len() as u64;
    outcomes.verdict.guard("tenures", outcomes.counts.tenures, 3 + faults.div_ceil(2));
}
