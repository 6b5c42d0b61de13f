//! Several etcd members that form a cluster.

use std::io;

use super::builder::{EtcdBuilder, Place};
use super::member::Etcd;
use crate::ports::retry_on_clash;
use crate::program;
use crate::waiting::{AGREE_LIMIT, wait_for};

/// A cluster of etcd members without TLS and authentication.
#[derive(Debug)]
pub struct EtcdCluster {
    members: Vec<Etcd>,
}

impl EtcdCluster {
    /// Starts `count` members and waits until each is healthy.
    ///
    /// # Errors
    ///
    /// If etcd is not installed or a member does not start.
    pub fn start(count: usize) -> io::Result<Self> {
        retry_on_clash(|| {
            let places: Vec<Place> = (0..count)
                .map(|index| Place::new(format!("member{index}")))
                .collect::<io::Result<_>>()?;
            let entries: Vec<String> = places.iter().map(Place::entry).collect();
            let members = places
                .into_iter()
                .map(|place| EtcdBuilder::default().prepare(place, entries.join(",")))
                .collect::<io::Result<_>>()?;
            let cluster = Self { members };
            cluster.restart_all()?;
            Ok(cluster)
        })
    }

    /// `etcd://127.0.0.1:PORT,127.0.0.1:PORT,...` with the ports for clients.
    #[must_use]
    pub fn url(&self) -> String {
        let addresses: Vec<String> = self.members.iter().map(Etcd::address).collect();
        format!("etcd://{}", addresses.join(","))
    }

    /// All members.
    #[must_use]
    pub fn nodes(&self) -> &[Etcd] {
        &self.members
    }

    /// The member at `index`, counted from 0.
    #[must_use]
    pub fn node(&self, index: usize) -> &Etcd {
        &self.members[index]
    }

    /// Kills all members, starts them again on their data, and waits until each is healthy.
    ///
    /// # Errors
    ///
    /// If one does not become healthy.
    pub fn restart_all(&self) -> io::Result<()> {
        self.members.iter().for_each(|member| member.kill());
        self.members.iter().try_for_each(|member| member.launch())?;
        self.members.iter().try_for_each(Etcd::wait_ready)
    }

    /// Runs `etcdctl` with these arguments against the members that run.
    ///
    /// # Errors
    ///
    /// If `etcdctl` is not installed, or fails.
    pub fn etcdctl(&self, arguments: &[&str]) -> io::Result<String> {
        let running: Vec<&Etcd> = self.members.iter().filter(|member| member.runs()).collect();
        let access = &self.members[0].access;
        program::run(access.etcdctl(&running)?.args(arguments))
    }

    /// The index of the leader, as a majority of all members sees it. Waits for an election.
    ///
    /// # Errors
    ///
    /// If no majority names a running leader within the limit.
    pub fn leader_index(&self) -> io::Result<usize> {
        wait_for("an etcd leader", AGREE_LIMIT, || Ok(self.leader_now()))
    }

    /// Kills the leader and returns its index.
    ///
    /// # Errors
    ///
    /// If there is no leader.
    pub fn kill_leader(&self) -> io::Result<usize> {
        let index = self.leader_index()?;
        self.members[index].kill();
        Ok(index)
    }

    fn leader_now(&self) -> Option<usize> {
        let views: Vec<(usize, View)> = self
            .members
            .iter()
            .enumerate()
            .filter(|(_, member)| member.runs())
            .filter_map(|(index, member)| Some((index, View::of(member)?)))
            .collect();
        let (index, view) = views.iter().find(|(_, view)| view.member == view.leader)?;
        let votes = views.iter().filter(|(_, other)| other.leader == view.leader).count();
        (votes > self.members.len() / 2).then_some(*index)
    }
}

/// Who a member is and whom it takes for the leader.
struct View {
    member: String,
    leader: String,
}

impl View {
    fn of(member: &Etcd) -> Option<Self> {
        let text = member.etcdctl(&["endpoint", "status", "-w", "fields"]).ok()?;
        let field = |name: &str| {
            text.lines()
                .filter_map(|line| line.split_once(" : "))
                .find_map(|(field, value)| (field == name).then(|| value.to_owned()))
        };
        Some(Self { member: field("\"MemberID\"")?, leader: field("\"Leader\"")? })
    }
}
