//! What is told of several sources.

use frazil_audit::{Auditor, Place, Search, Verdict, WorkerCount};
use frazil_id::{Id, Layout, Parts};

const LAYOUT: Layout = Layout::FRAZIL;

fn id(tick: u64, worker: u64, sequence: u64) -> Id {
    LAYOUT.encode(Parts { tick, worker, sequence }).unwrap()
}

/// Judges sources, and reads those again that can be.
fn judge(sources: &[(&str, &[Id])], rereadable: impl Fn(usize) -> bool) -> Verdict {
    let mut auditor = Auditor::new(&LAYOUT, 3);
    for (name, ids) in sources {
        let mut source = auditor.source(*name);
        for (id, line) in ids.iter().zip(1..) {
            source.check(*id, line);
        }
    }
    let mut verdict = auditor.finish();
    let mut search = Search::new(&verdict);
    for (source, (_, ids)) in sources.iter().enumerate() {
        if rereadable(source) && search.needs(source) {
            for (id, at) in ids.iter().zip(1..) {
                search.see(*id, Place { source, at });
            }
        }
    }
    search.tell(&mut verdict);
    verdict
}

fn place(source: usize, at: u64) -> Place {
    Place { source, at }
}

#[test]
fn clean_sources_are_counted_and_nothing_is_found() {
    let (a, b) = ([id(1, 3, 0), id(1, 3, 1), id(9, 3, 0)], [id(1, 4, 0)]);
    let verdict = judge(&[("a", &a), ("b", &b)], |_| true);
    assert!(verdict.is_clean());
    assert_eq!((verdict.checked, verdict.distinct, verdict.order_breaks()), (4, 4, 0));
    assert_eq!(verdict.ends, Some((id(1, 3, 0), id(9, 3, 0))));
    let workers = [WorkerCount { worker: 3, ids: 3 }, WorkerCount { worker: 4, ids: 1 }];
    assert_eq!(verdict.census.by_worker, workers);
    let busiest = verdict.census.busiest.unwrap();
    assert_eq!((busiest.worker, busiest.tick, busiest.ids), (3, 1, 2));
}

#[test]
fn nothing_at_all_is_clean() {
    let verdict = judge(&[("a", &[])], |_| true);
    assert!(verdict.is_clean());
    assert_eq!((verdict.checked, verdict.ends, verdict.census.busiest), (0, None, None));
}

#[test]
fn a_duplicate_is_told_with_both_places() {
    let (a, b) = ([id(1, 3, 0), id(2, 3, 0)], [id(5, 4, 0), id(2, 3, 0), id(5, 4, 0)]);
    let verdict = judge(&[("a", &a), ("b", &b)], |_| true);
    assert_eq!((verdict.duplicates, verdict.distinct), (2, 3));
    let found: Vec<_> =
        verdict.first_duplicates.iter().map(|found| (found.first, found.again)).collect();
    assert_eq!(found, [(Some(place(0, 2)), place(1, 2)), (Some(place(1, 1)), place(1, 3))]);
}

#[test]
fn an_id_that_comes_three_times_was_seen_first_where_it_was_seen_first() {
    let (a, b) = ([id(2, 3, 0)], [id(2, 3, 0), id(2, 3, 0)]);
    let verdict = judge(&[("a", &a), ("b", &b)], |_| true);
    assert!(verdict.first_duplicates.iter().all(|found| found.first == Some(place(0, 1))));
    let blind = judge(&[("a", &a), ("b", &b)], |source| source != 0);
    assert_eq!(blind.duplicates, 2);
    assert!(blind.first_duplicates.iter().all(|found| found.first.is_none()));
}

#[test]
fn only_the_first_findings_are_kept_and_all_are_counted() {
    let twice: Vec<Id> = (0..2000).map(|at| id(at % 1000, 0, 0)).collect();
    let verdict = judge(&[("a", &twice)], |_| true);
    assert_eq!((verdict.duplicates, verdict.first_duplicates.len()), (1000, 3));
    assert_eq!(verdict.first_duplicates[2].first, Some(place(0, 3)));
}

#[test]
fn order_is_a_matter_of_each_source() {
    let (a, b) = ([id(5, 0, 0), id(6, 0, 0)], [id(1, 0, 0), id(9, 0, 0), id(8, 0, 0)]);
    let verdict = judge(&[("a", &a), ("b", &b)], |_| true);
    assert_eq!((verdict.sources[0].order.breaks(), verdict.order_breaks()), (0, 1));
    let first = verdict.sources[1].order.first_break().unwrap();
    assert_eq!((first.before.id, first.before.at), (id(9, 0, 0), 2));
    assert_eq!((first.after.id, first.after.at), (id(8, 0, 0), 3));
}

#[test]
fn what_is_outside_the_layout_is_told_and_goes_no_further() {
    let a = [Id::from_u64(u64::MAX), id(1, 1, 1), Id::from_u64(u64::MAX)];
    let verdict = judge(&[("a", &a)], |_| true);
    assert!(!verdict.is_clean());
    assert_eq!((verdict.checked, verdict.distinct, verdict.outside), (3, 1, 2));
    assert_eq!(verdict.duplicates, 0);
    assert_eq!(verdict.first_outside[1].place, place(0, 3));
}
