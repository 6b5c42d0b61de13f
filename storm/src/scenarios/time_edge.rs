//! E31: a node whose clock is before the layout's epoch, and one that is started when the layout has
//! seconds left.
//!
//! A node does not begin to issue in the last day of its layout: whoever starts one then is told so
//! while there is time to move. That the last milliseconds themselves never wrap is shown by the tests
//! of `frazil-id`, where clocks can be set at will.
//!
//! That it was there is not taken for granted: the node says what its clock shows, and why it refuses.

use std::io;
use std::time::Duration;

use frazil_id::Layout;

use crate::checker::Counts;
use crate::clock;
use crate::history::{Outcome, RequestRecord};
use crate::scenario::{Play, Scenario};
use crate::stage::{Outcomes, Participants, Plan, Stage};
use crate::store::Kind;
use crate::verdict::Verdict;

/// Before the edge, when the node is started.
const LEAD: Duration = Duration::from_secs(4);
const LASTS: Duration = Duration::from_secs(6);
/// A request is of one side of an edge if it is not this near to it.
const READ: Duration = Duration::from_millis(100);
/// A tenure may begin two seconds ahead of the clock; the rest is for what is read later.
const AHEAD_MS: i64 = 2250;

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

/// What the clients and the node said while its clock went over an edge.
#[derive(Debug)]
struct Observed {
    /// What the node's clock showed at first and at last, by its own word, from the edge on.
    clock_ms: [i64; 2],
    before: Vec<RequestRecord>,
    after: Vec<RequestRecord>,
}

fn live_through(plan: &Plan, edge: Edge) -> io::Result<Outcomes> {
    let layout = Layout::FRAZIL;
    let edge_ms = match edge {
        Edge::Epoch => layout.epoch_ms().cast_signed(),
        Edge::End => layout.unix_ms((1 << layout.time_bits()) - 1).cast_signed() + 1,
    };
    let lead_ms = i64::try_from(LEAD.as_millis()).map_err(io::Error::other)?;
    // It is not waited for: at one of the edges it is never ready.
    let participants = Participants { nodes: 1, workers: 1, late: 1, ..Participants::default() };
    let mut stage = Stage::open(plan, &participants)?;
    let begin = clock::now();
    stage.nodes[0].set_off(edge_ms - lead_ms - clock::unix_ms())?;
    stage.nodes[0].start()?;
    let first = stage.nodes[0].clock_unix_ms()? - edge_ms;
    stage.rest(LASTS);
    let last = stage.nodes[0].clock_unix_ms()? - edge_ms;
    stage.record_fault(format!("{edge:?}"), Some(0), begin);
    // By the rig's own clock.
    let (over, end) = (begin + LEAD, clock::now());
    let record = &stage.load.record;
    let seen = Observed {
        clock_ms: [first, last],
        before: record.between(0, begin, over.saturating_sub(READ)),
        after: record.between(0, over + READ, end),
    };
    let mut outcomes = stage.close()?;
    let counts = outcomes.counts;
    match edge {
        Edge::Epoch => check_epoch(&seen, &counts, &mut outcomes.verdict),
        Edge::End => check_end(&seen, &counts, &mut outcomes.verdict),
    }
    Ok(outcomes)
}

/// Before the epoch nothing but a reason, after it IDs whose times are just after it.
fn check_epoch(seen: &Observed, counts: &Counts, verdict: &mut Verdict) {
    let [first, last] = seen.clock_ms;
    verdict.guard(
        "clock seen before the epoch, then after it",
        u64::from(first < 0 && last > 0),
        1,
    );
    let told = with_reason(&seen.before, "CLOCK_UNTRUSTED");
    verdict.guard("told before the epoch that the clock is not trusted", told, 10);
    verdict.guard("IDs after the epoch", counts.ids, 1000);
    let early: u64 = seen.before.iter().map(RequestRecord::ids).sum();
    verdict.hold("nothing before the epoch", early == 0, || format!("{early} IDs"));
    let latest = i64::try_from(counts.latest_tick).unwrap_or(i64::MAX);
    verdict.hold("times from the epoch on", latest <= last + AHEAD_MS, || {
        format!("an ID of tick {latest} when the clock was {last} ms after the epoch")
    });
    verdict.note("first tick", counts.earliest_tick);
}

/// A reason all the while, beyond the last millisecond too.
fn check_end(seen: &Observed, counts: &Counts, verdict: &mut Verdict) {
    let [first, last] = seen.clock_ms;
    verdict.guard("clock seen before the end, then after it", u64::from(first < 0 && last > 0), 1);
    for (when, marks) in [("before the end", &seen.before), ("after the end", &seen.after)] {
        let told = with_reason(marks, "TIME_EXHAUSTED");
        verdict.guard(format!("told {when} that time is exhausted"), told, 10);
    }
    let is_other =
        |mark: &&RequestRecord| with_reason(std::slice::from_ref(*mark), "TIME_EXHAUSTED") == 0;
    let other = seen.after.iter().find(is_other);
    verdict.hold("a typed error after the end", other.is_none(), || format!("{other:?}"));
    verdict.hold("nothing at the end", counts.ids == 0, || format!("{} IDs", counts.ids));
}

fn with_reason(marks: &[RequestRecord], wanted: &str) -> u64 {
    let is_it = |mark: &&RequestRecord| matches!(&mark.outcome, Outcome::Refused(reason) if reason == wanted);
    marks.iter().filter(is_it).count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marks(outcome: &Outcome, count: usize) -> Vec<RequestRecord> {
        let mark = RequestRecord {
            asked: Duration::ZERO,
            answered: Duration::ZERO,
            outcome: outcome.clone(),
        };
        vec![mark; count]
    }

    fn refused(reason: &str) -> Outcome {
        Outcome::Refused(reason.to_owned())
    }

    fn epoch(clock_ms: [i64; 2], before: &Outcome, latest_tick: u64) -> bool {
        let seen = Observed { clock_ms, before: marks(before, 20), after: Vec::new() };
        let mut verdict = Verdict::default();
        let counts = Counts { ids: 1000, latest_tick, ..Counts::default() };
        check_epoch(&seen, &counts, &mut verdict);
        verdict.passes()
    }

    #[test]
    fn a_node_that_never_was_before_the_epoch_shows_nothing() {
        let untrusted = refused("CLOCK_UNTRUSTED");
        assert!(epoch([-3900, 2100], &untrusted, 2100));
        assert!(!epoch([100, 2100], &untrusted, 2100), "its clock was right of the edge");
        assert!(!epoch([-3900, 2100], &refused("NO_WORKER"), 2100), "for another reason");
        assert!(!epoch([-3900, 2100], &Outcome::Ids(1), 2100), "IDs before the epoch");
        assert!(!epoch([-3900, 2100], &untrusted, 90_000_000_000), "IDs of today");
    }

    fn end(clock_ms: [i64; 2], after: &Outcome, ids: u64) -> bool {
        let before = marks(&refused("TIME_EXHAUSTED"), 20);
        let mut verdict = Verdict::default();
        let counts = Counts { ids, ..Counts::default() };
        check_end(&Observed { clock_ms, before, after: marks(after, 20) }, &counts, &mut verdict);
        verdict.passes()
    }

    #[test]
    fn a_node_that_never_came_to_the_end_shows_nothing() {
        let exhausted = refused("TIME_EXHAUSTED");
        assert!(end([-3900, 2100], &exhausted, 0));
        assert!(!end([-3900, -100], &exhausted, 0), "not there yet");
        assert!(!end([-3900, 2100], &refused("NO_WORKER"), 0), "for another reason");
        assert!(!end([-3900, 2100], &Outcome::Lost, 0), "it died there");
        assert!(!end([-3900, 2100], &exhausted, 1), "an ID");
    }
}
