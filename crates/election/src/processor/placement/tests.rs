//! Placement over pictures by chance.

use proptest::prelude::*;

use super::*;

/// This many nodes without quotas, named as people would, and this many jobs that nobody has.
fn cluster(nodes: usize, jobs: usize) -> ClusterView {
    let peer = |index| Peer { instance: format!("node-{index}"), ..Peer::default() };
    ClusterView {
        nodes: (0..nodes).map(|index| (format!("m{index}"), peer(index))).collect(),
        jobs: (0..jobs).map(|index| (format!("job-{index}"), None)).collect(),
    }
}

/// Gives every job that nobody has to the node that should take it.
fn place(cluster: &mut ClusterView) {
    let chosen: Vec<(String, Option<String>)> = cluster
        .places()
        .into_iter()
        .map(|(job, order)| (job.to_owned(), order.first().map(|mark| (*mark).to_owned())))
        .collect();
    cluster.jobs.extend(chosen);
}

/// A job that nobody has, and the node that should take it.
fn next_place(cluster: &ClusterView) -> Option<(String, String)> {
    let (job, order) = cluster.places().into_iter().find(|(_, order)| !order.is_empty())?;
    Some((job.to_owned(), order[0].to_owned()))
}

fn spread(cluster: &ClusterView) -> usize {
    let loads: Vec<usize> = cluster.nodes.keys().map(|mark| cluster.load(mark)).collect();
    loads.iter().max().unwrap() - loads.iter().min().unwrap()
}

/// One move by the rules, or `false`. The job goes where placement puts it.
fn rebalance(cluster: &mut ClusterView) -> bool {
    let marks: Vec<String> = cluster.nodes.keys().cloned().collect();
    let movers: Vec<&String> = marks.iter().filter(|mark| cluster.is_heaviest(mark)).collect();
    assert_eq!(movers.len(), 1, "one node moves at a time");
    let from = movers[0].as_str();
    let Some(to) = cluster.lighter(from) else { return false };
    let job = cluster.to_move(from, to, |_| true).unwrap().to_owned();
    cluster.jobs.insert(job, None);
    place(cluster);
    true
}

/// The sum of squares: falls with every move that makes loads more even.
fn unevenness(cluster: &ClusterView) -> usize {
    cluster.nodes.keys().map(|mark| cluster.load(mark).pow(2)).sum()
}

proptest! {
    #[test]
    fn jobs_that_nobody_has_are_placed_evenly(nodes in 1..12_usize, jobs in 0..80_usize) {
        let mut cluster = cluster(nodes, jobs);
        place(&mut cluster);
        prop_assert!(spread(&cluster) <= 1);
        prop_assert!(cluster.jobs.values().all(Option::is_some));
    }

    #[test]
    fn when_a_node_leaves_the_others_are_even_at_once_and_keep_theirs(
        nodes in 2..12_usize, jobs in 0..80_usize, leaver in 0..12_usize,
    ) {
        let mut cluster = cluster(nodes, jobs);
        place(&mut cluster);
        let before = cluster.jobs.clone();
        let leaver = format!("m{}", leaver % nodes);
        cluster.nodes.remove(&leaver);
        for holder in cluster.jobs.values_mut() {
            holder.take_if(|holder| *holder == leaver);
        }
        place(&mut cluster);
        prop_assert!(spread(&cluster) <= 1);
        for (job, holder) in before {
            prop_assert!(holder.as_ref() == Some(&leaver) || holder == cluster.jobs[&job]);
        }
    }

    #[test]
    fn every_order_has_every_node_with_room_once(
        nodes in 1..8_usize, jobs in 1..30_usize, quotas in prop::collection::vec(0..9_usize, 8),
    ) {
        let mut cluster = cluster(nodes, jobs);
        for (peer, quota) in cluster.nodes.values_mut().zip(quotas) {
            peer.quota = quota.checked_sub(1);
        }
        for order in cluster.places().values() {
            let mut sorted = order.clone();
            sorted.sort_unstable();
            sorted.dedup();
            prop_assert_eq!(sorted.len(), order.len());
        }
        // One after the other, as quotas are kept.
        while let Some((job, first)) = next_place(&cluster) {
            cluster.jobs.insert(job, Some(first));
        }
        for (mark, peer) in &cluster.nodes {
            prop_assert!(peer.quota.is_none_or(|quota| cluster.load(mark) <= quota));
        }
        let room = cluster.nodes.values().map(|peer| peer.quota.unwrap_or(jobs)).sum::<usize>();
        let placed = cluster.jobs.values().flatten().count();
        prop_assert_eq!(placed, room.min(jobs), "a job is left although there is room");
    }

    #[test]
    fn moves_one_at_a_time_end_even_and_each_of_them_helps(
        nodes in 1..8_usize, holders in prop::collection::vec(0..8_usize, 0..60),
    ) {
        let mut cluster = cluster(nodes, holders.len());
        for (holder, at) in cluster.jobs.values_mut().zip(&holders) {
            *holder = Some(format!("m{}", at % nodes));
        }
        let mut before = unevenness(&cluster);
        while rebalance(&mut cluster) {
            let after = unevenness(&cluster);
            prop_assert!(after < before, "a move for nothing");
            before = after;
        }
        prop_assert!(spread(&cluster) <= 1);
    }

    #[test]
    fn no_job_moves_to_a_node_that_is_full_or_runs_other_jobs(
        jobs in 2..30_usize, quota in 0..4_usize, other in any::<bool>(),
    ) {
        let mut cluster = cluster(2, jobs);
        let target = cluster.nodes.get_mut("m1").unwrap();
        if other { target.jobs = "other".into() } else { target.quota = Some(quota) }
        for holder in cluster.jobs.values_mut() {
            *holder = Some("m0".into());
        }
        let mut moved = 0;
        while cluster.lighter("m0").is_some() && moved <= jobs {
            let job = cluster.to_move("m0", "m1", |_| true).unwrap().to_owned();
            cluster.jobs.insert(job, Some("m1".into()));
            moved += 1;
        }
        let most = if other { 0 } else { quota };
        prop_assert!(moved <= most);
    }
}

#[test]
fn a_job_returns_to_the_instance_that_had_it_although_its_mark_is_new() {
    let mut before = cluster(3, 3);
    place(&mut before);
    let mut after = cluster(3, 3);
    let peer = after.nodes.remove("m1").unwrap();
    after.nodes.insert("another-mark".into(), peer);
    place(&mut after);
    for (job, holder) in &before.jobs {
        let now = after.jobs[job].as_deref().unwrap();
        let instance = |cluster: &ClusterView, mark: &str| cluster.nodes[mark].instance.clone();
        assert_eq!(instance(&before, holder.as_deref().unwrap()), instance(&after, now));
    }
}

#[test]
fn scores_favour_no_node() {
    let nodes = ["a", "b", "c"];
    let mut wins = [0_i32; 3];
    for job in 0..3000 {
        let name = format!("job-{job}");
        let best = (0..3).max_by_key(|node| score(&name, nodes[*node])).unwrap();
        wins[best] += 1;
    }
    assert!(wins.iter().all(|wins| (900..1100).contains(wins)), "{wins:?}");
}

#[test]
fn a_node_that_is_being_stopped_is_offered_nothing_and_keeps_what_it_has() {
    let mut cluster = cluster(3, 9);
    place(&mut cluster);
    cluster.nodes.remove("m0");
    assert_eq!(cluster.load("m0"), 3);
    assert!(cluster.places().is_empty());
    assert!(!cluster.is_heaviest("m0"));
    cluster.jobs.insert("job-0".into(), None);
    assert!(!cluster.places()["job-0"].contains(&"m0"));
}

#[test]
fn a_job_that_nobody_goes_for_keeps_no_room_from_others() {
    let mut cluster = cluster(1, 2);
    cluster.nodes.get_mut("m0").unwrap().quota = Some(1);
    let places = cluster.places();
    assert_eq!(
        (places["job-0"].as_slice(), places["job-1"].as_slice()),
        (&["m0"][..], &["m0"][..])
    );
}

#[test]
fn two_nodes_of_one_name_are_two_nodes() {
    let mut cluster = cluster(2, 10);
    for peer in cluster.nodes.values_mut() {
        peer.instance = "same".into();
    }
    place(&mut cluster);
    assert_eq!((cluster.load("m0"), cluster.load("m1")), (5, 5));
}

#[test]
fn the_fingerprint_of_a_set_of_names_does_not_depend_on_their_order() {
    let print = |names: &[&str]| fingerprint(names.iter().copied());
    assert_eq!(print(&["a", "b"]), print(&["b", "a"]));
    assert_ne!(print(&["a", "b"]), print(&["a", "bc"]));
    assert_ne!(print(&["a", "b"]), print(&["a"]));
}
