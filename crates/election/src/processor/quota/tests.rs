use super::super::placement::Peer;
use super::*;

fn cluster(holders: &[(&str, Option<&str>)]) -> ClusterView {
    let jobs = holders.iter().map(|(job, holder)| ((*job).into(), holder.map(Into::into)));
    ClusterView { jobs: jobs.collect(), ..ClusterView::default() }
}

#[test]
fn jobs_that_are_reached_for_count() {
    let free = cluster(&[("a", None), ("b", None), ("c", None)]);
    let quota = Quota::new("me".into(), Some(2));
    assert!(quota.reach("a", &free) && quota.reach("b", &free));
    assert!(!quota.reach("c", &free));
    assert!(quota.reach("a", &free), "asking again is not asking for more");
}

#[test]
fn a_job_that_another_got_is_not_reached_for_any_more() {
    let quota = Quota::new("me".into(), Some(1));
    assert!(quota.reach("a", &cluster(&[("a", None), ("b", None)])));
    assert!(quota.reach("b", &cluster(&[("a", Some("other")), ("b", None)])));
    // What is seen to be one's own is about to be begun.
    assert!(!quota.reach("a", &cluster(&[("a", None), ("b", Some("me"))])));
}

#[test]
fn a_job_that_was_lost_leaves_its_place() {
    let free = cluster(&[("a", None), ("b", None)]);
    let quota = Quota::new("me".into(), Some(1));
    for _ in 0..3 {
        assert!(quota.reach("a", &free) && quota.begin("a", Duration::ZERO));
        assert!(!quota.reach("b", &free));
        quota.end("a");
    }
    assert!(quota.reach("b", &free));
    quota.give_up("b");
    assert!(quota.reach("a", &free));
}

#[test]
fn a_job_that_was_won_late_is_refused_if_there_is_no_room_by_then() {
    let quota = Quota::new("me".into(), Some(1));
    assert!(quota.reach("a", &cluster(&[("a", None)])));
    assert!(quota.reach("b", &cluster(&[("a", Some("other")), ("b", None)])));
    assert!(quota.begin("b", Duration::ZERO));
    assert!(!quota.begin("a", Duration::ZERO));
    assert_eq!(quota.running().len(), 1);
}

#[test]
fn jobs_whose_time_is_over_at_once_are_not_all_given_up() {
    let jobs = ["a", "b", "c", "d", "e"];
    let mut cluster = cluster(&jobs.map(|job| (job, Some("me"))));
    cluster.nodes = ["me", "you"].map(|mark| (mark.to_owned(), Peer::default())).into();
    let quota = Quota::new("me".into(), None);
    let left: Vec<_> = jobs.into_iter().filter(|job| quota.leave(job, &cluster)).collect();
    assert_eq!(left, ["a", "b"], "three and two are even");
    // Nobody wanted one of them, and the other arrived.
    cluster.jobs.insert("a".into(), Some("you".into()));
    assert!(quota.begin("b", Duration::ZERO));
    assert!(quota.leave("c", &cluster) && !quota.leave("d", &cluster));
}

#[test]
fn a_quota_of_nothing_takes_nothing() {
    assert!(!Quota::new("me".into(), Some(0)).reach("a", &cluster(&[("a", None)])));
}
