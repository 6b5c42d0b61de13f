//! When a node gives a job away so that loads become even: pure.
//!
//! One job moves at a time: only the heaviest node gives one away, and only when nothing has moved
//! for a while. A move that did not help is not repeated soon.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::placement::Picture;

/// How eagerly jobs are moved so that loads become even.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Balance {
    /// No job moves before the nodes have been the same for this long.
    pub window: Duration,
    /// No job moves before all jobs have been where they are for this long.
    pub pause: Duration,
    /// No job moves that a node has had for less than this.
    pub min_hold: Duration,
}

impl Default for Balance {
    /// A window of 3 s, a pause of 250 ms, and jobs stay for at least 5 s.
    fn default() -> Self {
        Self {
            window: Duration::from_secs(3),
            pause: Duration::from_millis(250),
            min_hold: Duration::from_secs(5),
        }
    }
}

/// What one node remembers of how jobs moved.
#[derive(Debug)]
pub struct Balancer {
    balance: Balance,
    nodes: BTreeSet<String>,
    nodes_since: Duration,
    holders: BTreeMap<String, Option<String>>,
    holders_since: Duration,
    /// The job that was given away last.
    last: Option<String>,
    not_before: Duration,
}

/// What to do about loads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing until something changes.
    Even,
    /// Look again at this boot time.
    LookAt(Duration),
    /// Give this job away.
    GiveAway(String),
}

impl Balancer {
    /// One that has seen nothing.
    #[must_use]
    pub fn new(balance: Balance) -> Self {
        Self {
            balance,
            nodes: BTreeSet::new(),
            nodes_since: Duration::ZERO,
            holders: BTreeMap::new(),
            holders_since: Duration::ZERO,
            last: None,
            not_before: Duration::ZERO,
        }
    }

    /// Judges what is seen at a boot time. `own`: the jobs that this node runs, and since when.
    pub fn look(
        &mut self,
        picture: &Picture,
        node: &str,
        own: &BTreeMap<String, Duration>,
        now: Duration,
    ) -> Verdict {
        self.note(picture, now);
        let (true, Some(to)) = (picture.is_heaviest(node), picture.lighter(node)) else {
            return Verdict::Even;
        };
        let Balance { window, pause, min_hold } = self.balance;
        let calm = (self.nodes_since + window).max(self.holders_since + pause);
        let calm = calm.max(self.not_before);
        if now < calm {
            return Verdict::LookAt(calm);
        }
        let arrived = |job: &String| {
            let holder = picture.jobs.get(job).and_then(Option::as_deref);
            holder.is_some_and(|holder| holder != node)
        };
        if self.last.take().is_some_and(|job| !arrived(&job)) {
            // Who should have it may be gone, with its presence still to lapse.
            self.not_before = now + window * 4;
            return Verdict::LookAt(self.not_before);
        }
        let is_settled = |job: &str| own.get(job).is_some_and(|since| now >= *since + min_hold);
        match picture.to_move(node, to, is_settled) {
            Some(job) => {
                self.last = Some(job.to_owned());
                self.holders_since = now;
                Verdict::GiveAway(job.to_owned())
            }
            None => match own.values().min() {
                Some(since) => Verdict::LookAt((*since + min_hold).max(now + pause)),
                None => Verdict::Even,
            },
        }
    }

    fn note(&mut self, picture: &Picture, now: Duration) {
        if !picture.nodes.keys().eq(self.nodes.iter()) {
            self.nodes = picture.nodes.keys().cloned().collect();
            self.nodes_since = now;
        }
        if picture.jobs != self.holders {
            self.holders.clone_from(&picture.jobs);
            self.holders_since = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::placement::Peer;
    use super::*;

    const SETTLED: Duration = Duration::from_secs(100);

    /// Two nodes; the first has this many jobs, the second none.
    fn lopsided(jobs: usize) -> (Picture, BTreeMap<String, Duration>) {
        let peer = |name: &str| Peer { instance: name.into(), ..Peer::default() };
        let names = (0..jobs).map(|job| format!("job-{job}"));
        let own = names.clone().map(|name| (name, Duration::ZERO)).collect();
        let picture = Picture {
            nodes: ["a", "b"].map(|name| (name.to_owned(), peer(name))).into(),
            jobs: names.map(|name| (name, Some("a".to_owned()))).collect(),
        };
        (picture, own)
    }

    fn given(verdict: Verdict) -> String {
        match verdict {
            Verdict::GiveAway(job) => job,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_job_is_given_away_once_the_nodes_have_been_the_same_for_the_window() {
        let (picture, own) = lopsided(4);
        let mut balancer = Balancer::new(Balance::default());
        let Verdict::LookAt(calm) = balancer.look(&picture, "a", &own, SETTLED) else {
            panic!("at once")
        };
        assert_eq!(calm, SETTLED + Balance::default().window);
        given(balancer.look(&picture, "a", &own, calm));
    }

    #[test]
    fn the_lighter_node_gives_nothing_away() {
        let (picture, _) = lopsided(4);
        let mut balancer = Balancer::new(Balance::default());
        assert_eq!(balancer.look(&picture, "b", &BTreeMap::new(), SETTLED), Verdict::Even);
    }

    #[test]
    fn a_difference_of_one_is_even() {
        let (mut picture, own) = lopsided(3);
        picture.jobs.insert("job-0".into(), Some("b".into()));
        let mut balancer = Balancer::new(Balance::default());
        assert_eq!(balancer.look(&picture, "a", &own, SETTLED), Verdict::Even);
    }

    #[test]
    fn the_next_job_moves_only_after_the_one_before_it_has_arrived_and_a_pause() {
        let (mut picture, own) = lopsided(6);
        let mut balancer = Balancer::new(Balance::default());
        balancer.look(&picture, "a", &own, SETTLED);
        let now = SETTLED * 2;
        let first = given(balancer.look(&picture, "a", &own, now));
        // On its way it belongs to nobody.
        picture.jobs.insert(first.clone(), None);
        let on_its_way = balancer.look(&picture, "a", &own, now + Duration::from_millis(1));
        assert!(matches!(on_its_way, Verdict::LookAt(_)), "{on_its_way:?}");
        picture.jobs.insert(first, Some("b".into()));
        let arrived = now + Duration::from_millis(5);
        let calm = arrived + Balance::default().pause;
        assert_eq!(balancer.look(&picture, "a", &own, arrived), Verdict::LookAt(calm));
        given(balancer.look(&picture, "a", &own, calm));
    }

    #[test]
    fn a_job_that_went_to_a_third_node_has_arrived() {
        let (mut picture, own) = lopsided(6);
        picture.nodes.insert("c".into(), Peer::default());
        let mut balancer = Balancer::new(Balance::default());
        balancer.look(&picture, "a", &own, SETTLED);
        let now = SETTLED * 2;
        let first = given(balancer.look(&picture, "a", &own, now));
        picture.jobs.insert(first, Some("c".into()));
        balancer.look(&picture, "a", &own, now);
        given(balancer.look(&picture, "a", &own, now + Balance::default().pause));
    }

    #[test]
    fn a_job_that_came_back_stops_the_moving_for_a_while() {
        let (picture, own) = lopsided(6);
        let mut balancer = Balancer::new(Balance::default());
        balancer.look(&picture, "a", &own, SETTLED);
        let now = SETTLED * 2;
        given(balancer.look(&picture, "a", &own, now));
        // Nobody took it: "b" is gone, and its presence has not lapsed yet.
        let later = now + Balance::default().pause;
        let again = balancer.look(&picture, "a", &own, later);
        assert_eq!(again, Verdict::LookAt(later + Balance::default().window * 4));
    }

    #[test]
    fn a_job_that_was_just_taken_stays() {
        let (picture, mut own) = lopsided(4);
        let mut balancer = Balancer::new(Balance::default());
        balancer.look(&picture, "a", &own, SETTLED);
        let now = SETTLED * 2;
        own.values_mut().for_each(|since| *since = now);
        let min_hold = Balance::default().min_hold;
        let verdict = balancer.look(&picture, "a", &own, now);
        assert_eq!(verdict, Verdict::LookAt(now + min_hold));
        own.insert("job-2".into(), Duration::ZERO);
        assert_eq!(given(balancer.look(&picture, "a", &own, now)), "job-2");
    }
}
