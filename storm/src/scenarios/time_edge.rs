//! E31: a node whose clock is before the layout's epoch, and one that is started when the layout has
//! seconds left.
//!
//! A node does not begin to issue in the last day of its layout: whoever starts one then is told so
//! while there is time to move. That the last milliseconds themselves never wrap is shown by the tests
//! of `frazil-id`, where clocks can be set at will.

use std::io;
use std::time::Duration;

use frazil_id::Layout;

use crate::clock;
use crate::scenario::{Play, Scenario};
use crate::stage::{Cast, Outcomes, Plan, Stage};
use crate::store::Kind;

/// Before the edge, when the node is started.
const LEAD: Duration = Duration::from_secs(4);
const LASTS: Duration = Duration::from_secs(6);

pub(crate) const ROW: Scenario =
    Scenario { id: "E31", title: "the edges of time", stores: &[Kind::File], play: Play::Own(run) };

#[derive(Clone, Copy, Debug)]
enum Edge {
    Epoch,
    End,
}

fn run(plan: &Plan) -> io::Result<Outcomes> {
    let mut first = live_through(plan, Edge::Epoch)?;
    let second = live_through(plan, Edge::End)?;
    first.counts.ids += second.counts.ids;
    first.counts.answers += second.counts.answers;
    first.seconds += second.seconds;
    first.faults.extend(second.faults);
    for (reason, count) in second.refused {
        *first.refused.entry(reason).or_default() += count;
    }
    first.verdict.absorb(second.verdict);
    Ok(first)
}

fn live_through(plan: &Plan, edge: Edge) -> io::Result<Outcomes> {
    let layout = Layout::FRAZIL;
    let edge_ms = match edge {
        Edge::Epoch => layout.epoch_ms(),
        Edge::End => layout.unix_ms((1 << layout.time_bits()) - 1) + 1,
    };
    let lead_ms = i64::try_from(LEAD.as_millis()).map_err(io::Error::other)?;
    let offset_ms = edge_ms.cast_signed() - clock::unix_ms() - lead_ms;
    // It is not waited for: at one of the edges it is never ready.
    let cast = Cast { nodes: 1, workers: 1, late: 1, offset_ms, ..Cast::default() };
    let mut stage = Stage::open(plan, &cast)?;
    let begin = clock::now();
    stage.nodes[0].launch()?;
    stage.rest(LASTS);
    stage.was(format!("{edge:?}"), Some(0), begin);
    let mut outcomes = stage.close()?;
    match edge {
        // That every Id decodes and comes once is checked for each of them.
        Edge::Epoch => outcomes.verdict.guard("Ids after the epoch", outcomes.counts.ids, 1000),
        Edge::End => {
            let told = outcomes.refused.get("TIME_EXHAUSTED").copied().unwrap_or(0);
            outcomes.verdict.guard("told that time is exhausted", told, 10);
            let ids = outcomes.counts.ids;
            outcomes.verdict.hold("nothing at the end", ids == 0, || format!("{ids} Ids"));
        }
    }
    Ok(outcomes)
}
