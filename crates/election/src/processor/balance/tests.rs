use super::super::placement::Peer;
use super::*;

const SETTLED: Duration = Duration::from_secs(100);

/// Two nodes; the first has this many jobs, the second none.
fn lopsided(jobs: usize) -> (ClusterView, BTreeMap<String, Duration>) {
    let peer = |name: &str| Peer { instance: name.into(), ..Peer::default() };
    let names = (0..jobs).map(|job| format!("job-{job}"));
    let own = names.clone().map(|name| (name, Duration::ZERO)).collect();
    let cluster = ClusterView {
        nodes: ["a", "b"].map(|name| (name.to_owned(), peer(name))).into(),
        jobs: names.map(|name| (name, Some("a".to_owned()))).collect(),
    };
    (cluster, own)
}

fn given(step: BalanceStep) -> String {
    match step {
        BalanceStep::GiveAway(job) => job,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_job_is_given_away_once_the_nodes_have_been_the_same_for_the_window() {
    let (cluster, own) = lopsided(4);
    let mut balancer = Balancer::new(Balance::default());
    let BalanceStep::LookAt(calm) = balancer.look(&cluster, "a", &own, SETTLED) else {
        panic!("at once")
    };
    assert_eq!(calm, SETTLED + Balance::default().window);
    given(balancer.look(&cluster, "a", &own, calm));
}

#[test]
fn the_lighter_node_gives_nothing_away() {
    let (cluster, _) = lopsided(4);
    let mut balancer = Balancer::new(Balance::default());
    assert_eq!(balancer.look(&cluster, "b", &BTreeMap::new(), SETTLED), BalanceStep::Even);
}

#[test]
fn a_difference_of_one_is_even() {
    let (mut cluster, own) = lopsided(3);
    cluster.jobs.insert("job-0".into(), Some("b".into()));
    let mut balancer = Balancer::new(Balance::default());
    assert_eq!(balancer.look(&cluster, "a", &own, SETTLED), BalanceStep::Even);
}

#[test]
fn the_next_job_moves_only_after_the_one_before_it_has_arrived_and_a_pause() {
    let (mut cluster, own) = lopsided(6);
    let mut balancer = Balancer::new(Balance::default());
    balancer.look(&cluster, "a", &own, SETTLED);
    let now = SETTLED * 2;
    let first = given(balancer.look(&cluster, "a", &own, now));
    // On its way it belongs to nobody.
    cluster.jobs.insert(first.clone(), None);
    let on_its_way = balancer.look(&cluster, "a", &own, now + Duration::from_millis(1));
    assert!(matches!(on_its_way, BalanceStep::LookAt(_)), "{on_its_way:?}");
    cluster.jobs.insert(first, Some("b".into()));
    let arrived = now + Duration::from_millis(5);
    let calm = arrived + Balance::default().pause;
    assert_eq!(balancer.look(&cluster, "a", &own, arrived), BalanceStep::LookAt(calm));
    given(balancer.look(&cluster, "a", &own, calm));
}

#[test]
fn a_job_that_went_to_a_third_node_has_arrived() {
    let (mut cluster, own) = lopsided(6);
    cluster.nodes.insert("c".into(), Peer::default());
    let mut balancer = Balancer::new(Balance::default());
    balancer.look(&cluster, "a", &own, SETTLED);
    let now = SETTLED * 2;
    let first = given(balancer.look(&cluster, "a", &own, now));
    cluster.jobs.insert(first, Some("c".into()));
    balancer.look(&cluster, "a", &own, now);
    given(balancer.look(&cluster, "a", &own, now + Balance::default().pause));
}

#[test]
fn a_job_that_came_back_stops_the_moving_for_a_while() {
    let (cluster, own) = lopsided(6);
    let mut balancer = Balancer::new(Balance::default());
    balancer.look(&cluster, "a", &own, SETTLED);
    let now = SETTLED * 2;
    given(balancer.look(&cluster, "a", &own, now));
    // Nobody took it: "b" is gone, and its presence has not lapsed yet.
    let later = now + Balance::default().pause;
    let again = balancer.look(&cluster, "a", &own, later);
    assert_eq!(again, BalanceStep::LookAt(later + Balance::default().window * 4));
}

#[test]
fn a_job_that_was_just_taken_stays() {
    let (cluster, mut own) = lopsided(4);
    let mut balancer = Balancer::new(Balance::default());
    balancer.look(&cluster, "a", &own, SETTLED);
    let now = SETTLED * 2;
    own.values_mut().for_each(|since| *since = now);
    let min_hold = Balance::default().min_hold;
    let step = balancer.look(&cluster, "a", &own, now);
    assert_eq!(step, BalanceStep::LookAt(now + min_hold));
    own.insert("job-2".into(), Duration::ZERO);
    assert_eq!(given(balancer.look(&cluster, "a", &own, now)), "job-2");
}
