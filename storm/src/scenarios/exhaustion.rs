//! E32: one worker, asked for more than its sequence has, in batches as large as it; and somebody who
//! wants one ID at a time.
//!
//! That no tick has more IDs than the layout allows is checked exactly, as uniqueness: there are no
//! others. How much of what there is comes out depends on the machine, on which the clients run as
//! well: if it is less than the experiment asks for, the machine must have had nothing left to do.

use std::io;
use std::time::Duration;

use crate::clock;
use crate::load::{ClientMix, Pressure};
use crate::scenario::{Play, Scenario};
use crate::stage::{Outcomes, Participants, Plan, Stage};
use crate::store::Kind;
use crate::verdict::Verdict;

const LASTS: Duration = Duration::from_secs(20);
/// What a tick has.
const BATCH: u32 = 4096;
/// 4,096 IDs a millisecond.
const CAP_PER_SECOND: f64 = 4_096_000.0;
/// Of that, when there is CPU for it.
const SHARE: f64 = 0.9;
/// A machine with less to spare is busy.
const IDLE: f64 = 0.15;
/// To wait for the next tick takes no time of a processor; to answer does.
const CORES: f64 = 1.0;
/// Everybody waits in one line, and whoever wants a single ID finds eight in it who want a tick each:
/// that takes eight milliseconds whatever the node does. Beyond it the experiment allows five.
const SINGLE: Duration = Duration::from_millis(8 + 5);

pub(crate) const ROW: Scenario = Scenario {
    id: "E32",
    title: "the sequence used up",
    stores: &Kind::ALL,
    play: Play::Nodes { participants, act, judge },
};

fn participants(_: &Plan) -> Participants {
    let pressure = Pressure {
        connections: 8,
        batch: BATCH,
        client_mix: ClientMix::AndSingles,
        pause: Duration::ZERO,
        ..Pressure::default()
    };
    Participants { nodes: 1, workers: 1, pressure, ..Participants::default() }
}

fn act(stage: &mut Stage) -> io::Result<()> {
    let (begin, before) = (clock::now(), Consumption::read(stage)?);
    let lasts = LASTS.mul_f64(stage.plan.scale.max(0.2));
    stage.rest(lasts);
    stage.record_fault("more asked than there is", Some(0), begin);
    let (end, after) = (clock::now(), Consumption::read(stage)?);
    let measured = Measured::new(&before, &after, end - begin);
    measured.check(&mut stage.verdict);
    let mut singles: Vec<Duration> = stage
        .load
        .record
        .between(0, begin, end)
        .iter()
        .filter(|mark| mark.ids() == 1)
        .map(|mark| mark.answered - mark.asked)
        .collect();
    stage.verdict.guard("single IDs meanwhile", singles.len() as u64, 200);
    singles.sort_unstable();
    measured.check_singles(&singles, &mut stage.verdict);
    let exhausted = stage.nodes[0].metric("frazil_sequence_exhausted_total")?;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count")]
    stage.verdict.guard("sequences used up", exhausted as u64, 1);
    Ok(())
}

/// What was issued and used up to a moment.
#[derive(Debug)]
struct Consumption {
    ids: u64,
    /// Of the node.
    cpu_seconds: f64,
    /// Of all processors.
    idle_ticks: u64,
    all_ticks: u64,
}

impl Consumption {
    fn read(stage: &Stage) -> io::Result<Self> {
        let (idle_ticks, all_ticks) = machine(&std::fs::read_to_string("/proc/stat")?)?;
        let cpu_seconds = stage.nodes[0].metric("process_cpu_seconds_total")?;
        Ok(Self { ids: stage.load.ids(), cpu_seconds, idle_ticks, all_ticks })
    }
}

/// The time that all processors did nothing, and all time, as the kernel counts them.
fn machine(stat: &str) -> io::Result<(u64, u64)> {
    let line = stat.lines().next().unwrap_or_default();
    let times: Option<Vec<u64>> = line.split_whitespace().skip(1).map(|t| t.parse().ok()).collect();
    match times.as_deref() {
        // The first eight; the time of guests is in them already.
        Some([user, nice, system, idle, wait, irq, soft, stolen, ..]) => {
            Ok((idle + wait, user + nice + system + idle + wait + irq + soft + stolen))
        }
        _ => Err(io::Error::other(format!("/proc/stat begins with {line:?}"))),
    }
}

#[derive(Debug)]
struct Measured {
    /// Of what the layout allows.
    share: f64,
    /// That the node used.
    cores: f64,
    /// Of all processors.
    idle: f64,
}

impl Measured {
    #[expect(clippy::cast_precision_loss, reason = "rates")]
    fn new(before: &Consumption, after: &Consumption, lasted: Duration) -> Self {
        let seconds = lasted.as_secs_f64();
        let all = after.all_ticks.saturating_sub(before.all_ticks).max(1) as f64;
        Self {
            share: (after.ids - before.ids) as f64 / seconds / CAP_PER_SECOND,
            cores: (after.cpu_seconds - before.cpu_seconds) / seconds,
            idle: after.idle_ticks.saturating_sub(before.idle_ticks) as f64 / all,
        }
    }

    fn check(&self, verdict: &mut Verdict) {
        let Self { share, cores, idle } = self;
        verdict.note("share of what the layout allows", format!("{share:.3}"));
        verdict.note("cores of the node", format!("{cores:.2}"));
        verdict.note("share of the machine that was idle", format!("{idle:.2}"));
        // More than the layout allows would be duplicates, which the checker knows better.
        verdict.hold("no more than there is", *share < 1.01, || format!("{share:.3} of the cap"));
        verdict.hold("as much as there is", *share >= SHARE || *idle < IDLE, || {
            format!("{share:.3} of the cap, and {idle:.2} of the machine was idle")
        });
        verdict.hold("waits without a processor", *cores <= CORES, || {
            format!("the node used {cores:.2} cores; {CORES} is allowed")
        });
    }

    /// The slowest of a thousand on a machine that is busy says how long a client waited for a
    /// processor: then it is told, and the slowest of a hundred counts.
    fn check_singles(&self, sorted: &[Duration], verdict: &mut Verdict) {
        verdict.bar("p99 of a single ID", percentile(sorted, 990), SINGLE);
        let p999 = percentile(sorted, 999);
        match self.idle >= IDLE {
            true => verdict.bar("p99.9 of a single ID", p999, SINGLE),
            false => verdict.note("p99.9 of a single ID, on a busy machine", format!("{p999:?}")),
        }
    }
}

/// So many of a thousand are quicker.
fn percentile(sorted: &[Duration], per_mille: usize) -> Duration {
    sorted.get(sorted.len() * per_mille / 1000).copied().unwrap_or_default()
}

fn judge(_: &Plan, outcomes: &mut Outcomes) {
    outcomes.verdict.guard("IDs", outcomes.counts.ids, 1_000_000);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passes(share: f64, cores: f64, idle: f64) -> bool {
        let mut verdict = Verdict::default();
        Measured { share, cores, idle }.check(&mut verdict);
        verdict.passes()
    }

    #[test]
    fn too_many_too_few_and_a_busy_wait_are_found() {
        assert!(passes(0.95, 0.5, 0.4));
        assert!(passes(0.5, 0.5, 0.0), "there was no CPU for more");
        assert!(!passes(0.5, 0.5, 0.4), "there was");
        assert!(!passes(1.2, 0.5, 0.4), "more than there is");
        assert!(!passes(0.95, 1.5, 0.4), "busy");
    }

    #[test]
    fn what_was_spent_is_counted_between_two_looks() {
        let before = Consumption { ids: 0, cpu_seconds: 1.0, idle_ticks: 100, all_ticks: 1000 };
        let after =
            Consumption { ids: 4_096_000, cpu_seconds: 2.0, idle_ticks: 150, all_ticks: 1200 };
        let Measured { share, cores, idle } =
            Measured::new(&before, &after, Duration::from_secs(2));
        for (measured, expected) in [(share, 0.5), (cores, 0.5), (idle, 0.25)] {
            assert!((measured - expected).abs() < 1e-9, "{measured} is not {expected}");
        }
    }

    #[test]
    fn the_kernel_is_read() {
        let stat = "cpu  1 2 3 40 5 6 7 8 9 10\ncpu0 1 1 1 1 1 1 1 1 1 1\n";
        assert_eq!(machine(stat).unwrap(), (45, 72));
        assert!(machine("cpu 1 2").is_err());
    }

    #[test]
    fn single_ids_that_are_slow_are_found() {
        let passes = |slow: usize, idle: f64| {
            let mut times = vec![Duration::from_millis(1); 1000 - slow];
            times.extend(vec![Duration::from_secs(1); slow]);
            let mut verdict = Verdict::default();
            Measured { share: 1.0, cores: 0.1, idle }.check_singles(&times, &mut verdict);
            verdict.passes()
        };
        assert!(passes(0, 0.5));
        assert!(!passes(1, 0.5), "one of a thousand");
        assert!(passes(1, 0.0), "one of a thousand on a busy machine");
        assert!(!passes(10, 0.0), "one of a hundred");
    }
}
