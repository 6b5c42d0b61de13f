//! Several ZooKeeper servers that form an ensemble.

use std::io;

use super::builder::{EnsembleMember, ZooKeeperBuilder};
use super::server::ZooKeeper;
use crate::ports::{free_port, retry_on_clash};
use crate::waiting::{AGREE_LIMIT, wait_for};

/// An ensemble of ZooKeeper servers without TLS.
#[derive(Debug)]
pub struct ZooKeeperEnsemble {
    servers: Vec<ZooKeeper>,
}

impl ZooKeeperEnsemble {
    /// Starts `count` servers and waits until each serves.
    ///
    /// # Errors
    ///
    /// If ZooKeeper is not installed or a server does not start.
    pub fn start(count: usize) -> io::Result<Self> {
        retry_on_clash(|| {
            let mut builder = ZooKeeperBuilder::default();
            for id in 1..=count {
                let (peer, election) = (free_port()?, free_port()?);
                builder = builder.line(format!("server.{id}=127.0.0.1:{peer}:{election}"));
            }
            let servers = (1..=count)
                .map(|id| builder.prepare(Some(EnsembleMember { id })))
                .collect::<io::Result<_>>()?;
            let ensemble = Self { servers };
            ensemble.restart_all()?;
            Ok(ensemble)
        })
    }

    /// `zk://127.0.0.1:PORT,127.0.0.1:PORT,...`.
    #[must_use]
    pub fn url(&self) -> String {
        let addresses: Vec<String> = self.servers.iter().map(ZooKeeper::address).collect();
        format!("zk://{}", addresses.join(","))
    }

    /// All servers.
    #[must_use]
    pub fn nodes(&self) -> &[ZooKeeper] {
        &self.servers
    }

    /// The server at `index`, counted from 0.
    #[must_use]
    pub fn node(&self, index: usize) -> &ZooKeeper {
        &self.servers[index]
    }

    /// Kills all servers, starts them again on their data, and waits until each serves.
    ///
    /// # Errors
    ///
    /// If one does not become ready.
    pub fn restart_all(&self) -> io::Result<()> {
        self.servers.iter().for_each(|server| server.kill());
        self.servers.iter().try_for_each(|server| server.launch())?;
        self.servers.iter().try_for_each(ZooKeeper::wait_ready)
    }

    /// The index of the leader. Waits for an election.
    ///
    /// # Errors
    ///
    /// If no running server leads within the limit.
    pub fn leader_index(&self) -> io::Result<usize> {
        wait_for("a ZooKeeper leader", AGREE_LIMIT, || {
            let leads = |server: &ZooKeeper| {
                server.runs() && server.mode().is_ok_and(|mode| mode == "leader")
            };
            Ok(self.servers.iter().position(leads))
        })
    }

    /// Kills the leader and returns its index.
    ///
    /// # Errors
    ///
    /// If there is no leader.
    pub fn kill_leader(&self) -> io::Result<usize> {
        let index = self.leader_index()?;
        self.servers[index].kill();
        Ok(index)
    }
}
