//! What a register's ledger must look like, whatever happened to the leaders.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::register::{Ledger, Writer};
use crate::verdict::Verdict;

/// A process that was frozen for longer than its leadership lasts: what it says from then on, it
/// cannot know.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frozen {
    pub(super) process: u32,
    pub(super) begin: Duration,
}

/// How often something was seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Observed {
    pub(super) leaders: u64,
    pub(super) accepted: u64,
    pub(super) refused: u64,
}

/// Checks all of it.
pub(super) fn check(ledger: &Ledger, frozen: &[Frozen], verdict: &mut Verdict) -> Observed {
    fence(ledger, verdict);
    tokens(ledger, verdict);
    beliefs(ledger, frozen, verdict);
    let accepted = ledger.writes.iter().filter(|write| write.accepted).count();
    Observed {
        leaders: ledger.writers.len() as u64,
        accepted: accepted as u64,
        refused: (ledger.writes.len() - accepted) as u64,
    }
}

/// No write is accepted after one with a larger token.
fn fence(ledger: &Ledger, verdict: &mut Verdict) {
    let mut largest = 0;
    for write in ledger.writes.iter().filter(|write| write.accepted) {
        if write.token < largest {
            let who = describe(&ledger.writers[write.writer]);
            let text = format!("{who} wrote with {} after a write with {largest}", write.token);
            verdict.find("fence", text);
        }
        largest = largest.max(write.token);
    }
}

/// A token is of one process alone, and whoever begins later has a larger one.
fn tokens(ledger: &Ledger, verdict: &mut Verdict) {
    let mut first = BTreeMap::new();
    for write in &ledger.writes {
        let begun = first.entry(write.writer).or_insert((write.said, write.token));
        *begun = (*begun).min((write.said, write.token));
    }
    let mut begun: Vec<_> =
        first.into_iter().map(|(writer, (at, token))| (at, token, writer)).collect();
    begun.sort_unstable();
    for pair in begun.windows(2) {
        let [(_, earlier, one), (_, later, other)] = pair else { continue };
        if later <= earlier {
            let who = |writer: &usize| describe(&ledger.writers[*writer]);
            let text = format!("{} has {later}, after {} had {earlier}", who(other), who(one));
            verdict.find("token", text);
        }
    }
}

/// No two processes believe at a time that they lead.
fn beliefs(ledger: &Ledger, frozen: &[Frozen], verdict: &mut Verdict) {
    let mut spans = BTreeMap::<usize, (Duration, Duration)>::new();
    for write in &ledger.writes {
        let process = ledger.writers[write.writer].process;
        let is_excused =
            frozen.iter().any(|frozen| frozen.process == process && frozen.begin <= write.said);
        if is_excused {
            continue;
        }
        let span = spans.entry(write.writer).or_insert((write.said, write.said));
        *span = (span.0.min(write.said), span.1.max(write.said));
    }
    let mut spans: Vec<_> =
        spans.into_iter().map(|(writer, (from, to))| (from, to, writer)).collect();
    spans.sort_unstable();
    let mut longest: Option<(Duration, usize)> = None;
    for (begin, end, writer) in spans {
        if let Some((until, other)) = longest
            && begin <= until
        {
            let who = |writer: usize| describe(&ledger.writers[writer]);
            let common = until.min(end) - begin;
            let text = format!("{} and {} both led for {common:?}", who(other), who(writer));
            verdict.find("belief", text);
        }
        longest = longest.max(Some((end, writer)));
    }
}

fn describe(writer: &Writer) -> String {
    format!("process {} of {}", writer.process, writer.instance)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::register::Rule;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// A ledger of two writers: who writes, with which token, and when.
    fn ledger(rule: Rule, writes: &[(usize, u64, u64)]) -> Ledger {
        let mut ledger = Ledger::new(rule);
        for process in [10, 11] {
            let instance = format!("candidate-{process}");
            ledger.writers.push(Writer { instance, process, parent: 1, is_connected: true });
        }
        for (writer, token, said) in writes {
            ledger.write(*writer, *token, ms(*said));
        }
        ledger
    }

    fn oracles(ledger: &Ledger, frozen: &[Frozen]) -> Vec<&'static str> {
        let mut verdict = Verdict::default();
        check(ledger, frozen, &mut verdict);
        verdict.findings.iter().map(|finding| finding.oracle).collect()
    }

    const WOKE_UP: [(usize, u64, u64); 4] = [(0, 5, 10), (1, 6, 20), (0, 5, 30), (1, 6, 40)];
    const ASLEEP: [Frozen; 1] = [Frozen { process: 10, begin: Duration::from_millis(11) }];

    #[test]
    fn a_register_that_compares_refuses_whoever_wakes_up_late() {
        let ledger = ledger(Rule::Fenced, &WOKE_UP);
        assert!(oracles(&ledger, &ASLEEP).is_empty());
        let seen = check(&ledger, &ASLEEP, &mut Verdict::default());
        assert_eq!(seen, Observed { leaders: 2, accepted: 3, refused: 1 });
    }

    #[test]
    fn a_register_that_does_not_compare_is_found_out() {
        assert_eq!(oracles(&ledger(Rule::Blind, &WOKE_UP), &ASLEEP), ["fence"]);
    }

    #[test]
    fn two_who_believe_at_a_time_are_found_unless_one_was_frozen() {
        assert_eq!(oracles(&ledger(Rule::Fenced, &WOKE_UP), &[]), ["belief"]);
        let within = [(0, 5, 10), (1, 6, 20), (1, 6, 25), (0, 5, 30)];
        assert_eq!(oracles(&ledger(Rule::Fenced, &within), &[]), ["belief"]);
        let other = Frozen { process: 11, begin: ms(30) };
        assert_eq!(oracles(&ledger(Rule::Fenced, &WOKE_UP), &[other]), ["belief"]);
    }

    #[test]
    fn a_token_of_two_processes_or_one_that_falls_is_found() {
        assert_eq!(oracles(&ledger(Rule::Fenced, &[(0, 5, 10), (1, 5, 20)]), &[]), ["token"]);
        assert_eq!(oracles(&ledger(Rule::Fenced, &[(0, 5, 10), (1, 4, 20)]), &[]), ["token"]);
    }

    #[test]
    fn leaders_that_follow_each_other_are_let_through() {
        let writes = [(0, 5, 10), (0, 5, 12), (1, 6, 20), (1, 6, 22)];
        assert!(oracles(&ledger(Rule::Fenced, &writes), &[]).is_empty());
    }
}
