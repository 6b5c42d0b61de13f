use super::super::placement::Peer;
use super::*;

fn cluster(holders: &[(&str, Option<&str>)]) -> ClusterView {
    let jobs = holders.iter().map(|(job, holder)| ((*job).into(), holder.map(Into::into)));
    ClusterView { jobs: jobs.collect(), ..ClusterView::default() }
}

#[test]
fn jobs_that_are_reached_for_count() {
    let free = cluster(&[("a", None), ("b", None), ("c", None)]);
    let ledger = Ledger::new("me".into(), Some(2));
    assert!(ledger.reach("a", &free) && ledger.reach("b", &free));
    assert!(!ledger.reach("c", &free));
    assert!(ledger.reach("a", &free), "asking again is not asking for more");
}

#[test]
fn a_job_that_another_got_is_not_reached_for_any_more() {
    let ledger = Ledger::new("me".into(), Some(1));
    assert!(ledger.reach("a", &cluster(&[("a", None), ("b", None)])));
    assert!(ledger.reach("b", &cluster(&[("a", Some("other")), ("b", None)])));
    // What is seen to be one's own is about to be begun.
    assert!(!ledger.reach("a", &cluster(&[("a", None), ("b", Some("me"))])));
}

#[test]
fn a_job_that_was_lost_leaves_its_place() {
    let free = cluster(&[("a", None), ("b", None)]);
    let ledger = Ledger::new("me".into(), Some(1));
    for _ in 0..3 {
        assert!(ledger.reach("a", &free) && ledger.begin("a", Duration::ZERO));
        assert!(!ledger.reach("b", &free));
        ledger.end("a");
    }
    assert!(ledger.reach("b", &free));
    ledger.give_up("b");
    assert!(ledger.reach("a", &free));
}

#[test]
fn a_job_that_was_won_late_is_refused_if_there_is_no_room_by_then() {
    let ledger = Ledger::new("me".into(), Some(1));
    assert!(ledger.reach("a", &cluster(&[("a", None)])));
    assert!(ledger.reach("b", &cluster(&[("a", Some("other")), ("b", None)])));
    assert!(ledger.begin("b", Duration::ZERO));
    assert!(!ledger.begin("a", Duration::ZERO));
    assert_eq!(ledger.running().len(), 1);
}

#[test]
fn jobs_whose_time_is_over_at_once_are_not_all_given_up() {
    let jobs = ["a", "b", "c", "d", "e"];
    let mut cluster = cluster(&jobs.map(|job| (job, Some("me"))));
    cluster.nodes = ["me", "you"].map(|mark| (mark.to_owned(), Peer::default())).into();
    let ledger = Ledger::new("me".into(), None);
    let left: Vec<_> = jobs.into_iter().filter(|job| ledger.leave(job, &cluster)).collect();
    assert_eq!(left, ["a", "b"], "three and two are even");
    // Nobody wanted one of them, and the other arrived.
    cluster.jobs.insert("a".into(), Some("you".into()));
    assert!(ledger.begin("b", Duration::ZERO));
    assert!(ledger.leave("c", &cluster) && !ledger.leave("d", &cluster));
}

#[test]
fn a_quota_of_nothing_takes_nothing() {
    assert!(!Ledger::new("me".into(), Some(0)).reach("a", &cluster(&[("a", None)])));
}
