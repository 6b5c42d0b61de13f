//! The placement of jobs on nodes: pure, and the same on every node that sees the same.
//!
//! Each node has a rendezvous score for each job. A job that nobody runs goes to the node with the
//! highest score among those that have less than their fair share; nobody is told so. Every node
//! waits before it campaigns for as long as it ranks behind others, and so the right one wins.

use std::cmp::Reverse;
use std::collections::BTreeMap;

/// What is known of the nodes and jobs of an application at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterView {
    /// The nodes that take part, by their marks.
    pub nodes: BTreeMap<String, Peer>,
    /// The jobs, each with the mark of the node that has it. That node need not be among
    /// `nodes`: one that is being stopped takes no part any more and has jobs still.
    pub jobs: BTreeMap<String, Option<String>>,
}

/// A node that takes part.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Peer {
    /// What people call it. Scores come from it, so that jobs return to where they were.
    pub instance: String,
    /// It takes no more jobs than this.
    pub quota: Option<usize>,
    /// The fingerprint of the names of the jobs that it can run.
    pub jobs: String,
}

/// The loads that would be even: all nodes have `least`, and `extra` of them one more.
#[derive(Clone, Copy)]
struct EvenLoads {
    least: usize,
    extra: usize,
}

impl ClusterView {
    /// How many jobs a node has.
    #[must_use]
    pub fn load(&self, node: &str) -> usize {
        self.jobs.values().flatten().filter(|holder| *holder == node).count()
    }

    /// For every job that nobody has, the nodes that may take it, the one that should first.
    #[must_use]
    pub fn places(&self) -> BTreeMap<&str, Vec<&str>> {
        let loads = self.loads();
        let mut planned = loads.clone();
        let nodes = self.nodes.len().max(1);
        let even = EvenLoads { least: self.jobs.len() / nodes, extra: self.jobs.len() % nodes };
        let free = self.jobs.iter().filter(|(_, holder)| holder.is_none());
        let mut places = BTreeMap::new();
        for (job, _) in free {
            let order = self.order(job, &loads, &planned, even);
            if let Some(load) = order.first().and_then(|first| planned.get_mut(first)) {
                *load += 1;
            }
            places.insert(job.as_str(), order);
        }
        places
    }

    /// The node that should get one of this node's jobs: it has at least two fewer, has room, and
    /// can run the same jobs. `None`: to move a job would make nothing more even.
    #[must_use]
    pub fn lighter(&self, node: &str) -> Option<&str> {
        let own = self.nodes.get(node)?;
        let loads = self.loads();
        let load = loads.get(node).copied()?;
        let peers = self.nodes.iter().filter(|(_, peer)| peer.jobs == own.jobs);
        let lighter = peers
            .filter_map(|(mark, peer)| Some((*loads.get(mark.as_str())?, mark.as_str(), peer)))
            .filter(|(other, _, peer)| other + 2 <= load && peer.has_room(*other))
            .min_by_key(|(other, mark, _)| (*other, *mark));
        lighter.map(|(_, mark, _)| mark)
    }

    /// Whether no node that can run the same jobs has more than this one. Only the heaviest gives
    /// a job away, so that one moves at a time; of several, the one with the lowest mark.
    #[must_use]
    pub fn is_heaviest(&self, node: &str) -> bool {
        let Some(own) = self.nodes.get(node) else { return false };
        let loads = self.loads();
        let peers = self.nodes.iter().filter(|(_, peer)| peer.jobs == own.jobs);
        let heaviest = peers.max_by_key(|(mark, _)| (loads.get(mark.as_str()), Reverse(*mark)));
        heaviest.is_some_and(|(mark, _)| mark == node)
    }

    /// The job of `from` that `to` has the best claim to, of those that may move.
    pub fn to_move(&self, from: &str, to: &str, may_move: impl Fn(&str) -> bool) -> Option<&str> {
        let (from_peer, to_peer) = (self.nodes.get(from)?, self.nodes.get(to)?);
        let held = self.jobs.iter().filter(|(_, holder)| holder.as_deref() == Some(from));
        let movable = held.map(|(job, _)| job.as_str()).filter(|job| may_move(job));
        let claim = |job: &str| {
            let (here, there) = (score(job, &from_peer.instance), score(job, &to_peer.instance));
            i128::from(there) - i128::from(here)
        };
        movable.max_by_key(|job| claim(job))
    }

    fn loads(&self) -> BTreeMap<&str, usize> {
        let mut loads: BTreeMap<&str, usize> =
            self.nodes.keys().map(|mark| (mark.as_str(), 0)).collect();
        for holder in self.jobs.values().flatten() {
            if let Some(load) = loads.get_mut(holder.as_str()) {
                *load += 1;
            }
        }
        loads
    }

    /// Those with less than an even load by their scores, then the others by their loads. Whoever
    /// has room is in it, even if jobs are planned for it that would fill it: they may be jobs that
    /// nobody goes for.
    fn order<'a>(
        &'a self,
        job: &str,
        loads: &BTreeMap<&'a str, usize>,
        planned: &BTreeMap<&'a str, usize>,
        even: EvenLoads,
    ) -> Vec<&'a str> {
        let above = planned.values().filter(|load| **load > even.least).count();
        let is_due = |load: usize| load < even.least || (load == even.least && above < even.extra);
        let with_room = self.nodes.iter().filter(|(mark, peer)| {
            loads.get(mark.as_str()).is_some_and(|load| peer.has_room(*load))
        });
        let mut ranked: Vec<_> = with_room
            .map(|(mark, peer)| {
                let load = planned.get(mark.as_str()).copied().unwrap_or(0);
                let surplus = if is_due(load) { 0 } else { load + 1 };
                let key = (!peer.has_room(load), surplus, Reverse(score(job, &peer.instance)));
                (key, mark.as_str())
            })
            .collect();
        ranked.sort_unstable();
        ranked.into_iter().map(|(_, mark)| mark).collect()
    }
}

impl Peer {
    fn has_room(&self, load: usize) -> bool {
        self.quota.is_none_or(|quota| load < quota)
    }
}

/// How much a node is to have a job, the same in every process and version: FNV-1a with a finish
/// that spreads neighbouring names.
#[must_use]
pub fn score(job: &str, instance: &str) -> u64 {
    const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    // No name has this byte in it.
    const BETWEEN: u8 = 0xff;
    let bytes = job.bytes().chain([BETWEEN]).chain(instance.bytes());
    let hash = bytes.fold(OFFSET, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME));
    let hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}

/// A short text that differs where the sets of names differ.
pub(super) fn fingerprint<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let mut names: Vec<&str> = names.collect();
    names.sort_unstable();
    format!("{:016x}", score(&names.join("\n"), ""))
}

#[cfg(test)]
mod tests;
