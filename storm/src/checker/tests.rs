use super::*;
use crate::history::{Tolerance, UnorderedIds};

const NOW_MS: i64 = 1_800_000_000_000;

/// An answer of a node: IDs of a worker under a token, so many milliseconds after the beginning.
struct Case {
    node: usize,
    worker: u64,
    token: u64,
    asked: u64,
    sequences: std::ops::Range<u64>,
    tick_shift: i64,
}

impl Case {
    fn answer(&self) -> Answer {
        let layout = Layout::FRAZIL;
        let asked_unix_ms = NOW_MS + self.asked.cast_signed();
        let tick = layout.tick_at(asked_unix_ms + self.tick_shift).unwrap();
        let encode = |sequence| {
            let parts = frazil_id::Parts { tick, worker: self.worker, sequence };
            layout.encode(parts).unwrap().to_u64()
        };
        Answer {
            process_run: ProcessRun { node: self.node, start: 1 },
            connection: 0,
            asked: Duration::from_millis(self.asked),
            answered: Duration::from_millis(self.asked + 1),
            asked_unix_ms,
            answered_unix_ms: asked_unix_ms + 1,
            tolerance: Tolerance { behind_ms: 100, ahead_ms: 100 },
            token: Some(self.token),
            ids: self.sequences.clone().map(encode).collect(),
        }
    }
}

fn case(node: usize, token: u64, asked: u64) -> Case {
    Case { node, worker: 3, token, asked, sequences: 0..10, tick_shift: 0 }
}

/// The oracles that spoke.
fn oracles(cases: &[Case]) -> Vec<&'static str> {
    let caught = Arc::new(AtomicU64::new(0));
    let mut checker = Checker::new(Layout::FRAZIL, Arc::clone(&caught));
    cases.iter().for_each(|case| checker.take(&case.answer()));
    let (verdict, ..) = checker.finish();
    verdict.findings.iter().map(|finding| finding.oracle).collect()
}

#[test]
fn what_is_right_is_let_through() {
    let later_tenure = case(1, 8, 30);
    assert!(oracles(&[case(0, 7, 0), case(0, 7, 10), later_tenure]).is_empty());
}

#[test]
fn ids_of_a_strict_scope_are_in_order_whoever_was_asked() {
    let found = |is_strict, cases: &[Case]| {
        let mut checker = Checker::new(Layout::FRAZIL, Arc::default());
        checker.is_strict = is_strict;
        for case in cases {
            checker.take(&Answer { token: None, ..case.answer() });
        }
        let (verdict, ..) = checker.finish();
        verdict.findings.iter().map(|finding| finding.oracle).collect::<Vec<_>>()
    };
    let ahead = Case { worker: 4, tick_shift: 50, ..case(0, 7, 0) };
    let cases = [ahead, case(1, 8, 30)];
    assert_eq!(found(true, &cases), ["order"]);
    assert!(found(false, &cases).is_empty(), "of two nodes, and of no scope");
    let later = Case { worker: 4, ..case(0, 7, 60) };
    assert!(found(true, &[case(1, 8, 30), later]).is_empty());
}

#[test]
fn an_id_that_comes_twice_is_found() {
    let again = Case { tick_shift: -10, ..case(0, 7, 10) };
    assert!(oracles(&[case(0, 7, 0), again]).contains(&"unique"));
}

#[test]
fn an_id_that_comes_twice_from_another_node_is_found() {
    let again = Case { tick_shift: -10, ..case(1, 8, 10) };
    let found = oracles(&[case(0, 7, 0), again]);
    assert!(found.contains(&"unique") && found.contains(&"tenure"), "{found:?}");
}

#[test]
fn two_holders_at_a_time_are_found_without_a_duplicate() {
    let between = Case { sequences: 100..110, ..case(1, 8, 5) };
    assert_eq!(oracles(&[case(0, 7, 0), between, case(0, 7, 10)]), ["tenure"]);
}

#[test]
fn a_token_of_two_nodes_is_found() {
    assert_eq!(oracles(&[case(0, 7, 0), case(1, 7, 10)]), ["token"]);
}

#[test]
fn a_smaller_id_after_a_larger_one_was_received_is_found() {
    let back = Case { sequences: 20..30, tick_shift: -30, ..case(0, 7, 40) };
    assert_eq!(oracles(&[case(0, 7, 20), back]), ["order"]);
}

#[test]
fn overlapping_requests_may_be_answered_in_any_order() {
    let mut early = case(0, 7, 0).answer();
    early.answered = Duration::from_millis(30);
    let mut checker = Checker::new(Layout::FRAZIL, Arc::default());
    checker.take(&case(0, 7, 10).answer());
    checker.take(&early);
    assert!(checker.finish().0.passes());
}

#[test]
fn times_far_from_the_truth_are_found() {
    for tick_shift in [-200, 200] {
        assert_eq!(oracles(&[Case { tick_shift, ..case(0, 7, 300) }]), ["truth"]);
    }
}

#[test]
fn what_does_not_say_whose_it_is_must_be_unique_in_order_and_true_all_the_same() {
    let found = |cases: &[Case]| {
        let mut checker = Checker::new(Layout::FRAZIL, Arc::default());
        for case in cases {
            checker.take(&Answer { token: None, ..case.answer() });
        }
        let (verdict, _, counts) = checker.finish();
        assert_eq!(counts.untold, cases.len() as u64);
        verdict.findings.iter().map(|finding| finding.oracle).collect::<Vec<_>>()
    };
    assert!(found(&[case(0, 7, 0), case(0, 7, 10)]).is_empty());
    let again = Case { tick_shift: -10, ..case(0, 7, 10) };
    assert!(found(&[case(0, 7, 0), again]).contains(&"unique"));
    let back = Case { sequences: 20..30, tick_shift: -30, ..case(0, 7, 40) };
    assert_eq!(found(&[case(0, 7, 20), back]), ["order"]);
    let hour_ahead = Case { tick_shift: 3_600_000, ..case(0, 7, 0) };
    assert_eq!(found(&[hour_ahead]), ["truth"]);
}

#[test]
fn an_answer_of_two_workers_or_not_ascending_is_found() {
    let mut mixed = case(0, 7, 0).answer();
    mixed.ids[5] += 1 << Layout::FRAZIL.sequence_bits();
    let mut checker = Checker::new(Layout::FRAZIL, Arc::default());
    checker.take(&mixed);
    let (verdict, ..) = checker.finish();
    let found: Vec<_> = verdict.findings.iter().map(|finding| finding.oracle).collect();
    assert_eq!(found, ["order", "layout"]);
}

#[test]
fn an_id_outside_the_layout_is_found() {
    let mut outside = case(0, 7, 0).answer();
    outside.ids = vec![u64::MAX];
    let caught = Arc::new(AtomicU64::new(0));
    let mut checker = Checker::new(Layout::FRAZIL, Arc::clone(&caught));
    checker.take(&outside);
    assert_eq!(caught.load(Ordering::Relaxed), 1);
    assert_eq!(checker.finish().0.findings[0].oracle, "layout");
}

#[test]
fn what_went_through_a_client_must_be_unique_among_all_and_true() {
    let found = |change: fn(&mut UnorderedIds)| {
        let mut checker = Checker::new(Layout::FRAZIL, Arc::default());
        checker.take(&case(0, 7, 0).answer());
        let Answer { asked_unix_ms, answered_unix_ms, tolerance, ids, .. } =
            case(1, 8, 10).answer();
        let ids = ids.into_iter().rev().collect();
        let mut unordered_ids = UnorderedIds { asked_unix_ms, answered_unix_ms, tolerance, ids };
        change(&mut unordered_ids);
        checker.take_handful(&unordered_ids);
        let (verdict, _, counts) = checker.finish();
        assert!(counts.through_clients > 0 && counts.ids > counts.through_clients);
        verdict.findings.iter().map(|finding| finding.oracle).collect::<Vec<_>>()
    };
    assert!(found(|_| ()).is_empty(), "in any order");
    assert_eq!(found(|unordered_ids| unordered_ids.ids.push(unordered_ids.ids[0])), ["unique"]);
    let directly =
        |unordered_ids: &mut UnorderedIds| unordered_ids.ids.push(case(0, 7, 0).answer().ids[0]);
    assert_eq!(found(directly), ["unique"], "with one that was asked for directly");
    let late = found(|unordered_ids| unordered_ids.asked_unix_ms += 3_600_000);
    assert!(!late.is_empty() && late.iter().all(|oracle| *oracle == "truth"));
    let early = found(|unordered_ids| unordered_ids.answered_unix_ms -= 3_600_000);
    assert!(!early.is_empty() && early.iter().all(|oracle| *oracle == "truth"));
}
