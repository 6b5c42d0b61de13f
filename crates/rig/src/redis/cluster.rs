//! A Redis cluster.

use std::io;

use super::{Redis, RedisBuilder};
use crate::ports::{free_port, retry_on_clash};
use crate::waiting::{AGREE_LIMIT, wait_until};

/// How many hash slots a Redis cluster has.
const SLOTS: usize = 16_384;

/// How long a node may be silent before the others call it failed, in milliseconds.
const NODE_TIMEOUT_MS: u32 = 1_000;

/// Redis servers that form a cluster: masters that share the slots, then their replicas.
#[derive(Debug)]
pub struct RedisCluster {
    nodes: Vec<Redis>,
    masters: usize,
}

impl RedisCluster {
    /// Starts a cluster of `masters` without replicas; Redis wants at least 3 for a fail-over.
    ///
    /// # Errors
    ///
    /// If Redis is not installed or the cluster does not form.
    pub fn start(masters: usize) -> io::Result<Self> {
        Self::with_replicas(masters, 0)
    }

    /// Starts a cluster with `replicas` of each master.
    ///
    /// # Errors
    ///
    /// If Redis is not installed or the cluster does not form.
    pub fn with_replicas(masters: usize, replicas: usize) -> io::Result<Self> {
        let nodes = (0..masters * (1 + replicas))
            .map(|_| start_node())
            .collect::<io::Result<Vec<Node>>>()?;
        meet(&nodes)?;
        let nodes = nodes.into_iter().map(|node| node.redis).collect();
        let cluster = Self { nodes, masters };
        cluster.wait_acquainted()?;
        cluster.share_slots()?;
        cluster.assign_replicas()?;
        cluster.wait_replicas_known()?;
        cluster.wait_ok()?;
        Ok(cluster)
    }

    /// `redis+cluster://127.0.0.1:PORT,127.0.0.1:PORT,...` with all nodes.
    #[must_use]
    pub fn url(&self) -> String {
        let addresses: Vec<String> = self.nodes.iter().map(Redis::address).collect();
        format!("redis+cluster://{}", addresses.join(","))
    }

    /// All nodes: first those that were made masters, then the replicas, in the masters' order.
    #[must_use]
    pub fn nodes(&self) -> &[Redis] {
        &self.nodes
    }

    /// The node at `index`, counted from 0.
    #[must_use]
    pub fn node(&self, index: usize) -> &Redis {
        &self.nodes[index]
    }

    /// The index of the node that now is the master of a key's slot.
    ///
    /// # Errors
    ///
    /// If no node that answers has it.
    pub fn master_of(&self, key: &str) -> io::Result<usize> {
        // Other nodes answer with the address of the slot's master.
        let owns = |node: &Redis| {
            let role = node.info("role").unwrap_or_default();
            let reply = node.cli(&["EXISTS", key]).unwrap_or_default();
            role == "master" && reply.trim().parse::<u64>().is_ok()
        };
        let found = self.nodes.iter().position(owns);
        found.ok_or_else(|| io::Error::other(format!("no node has the slot of {key}")))
    }

    /// Waits until every running node sees the cluster whole.
    ///
    /// # Errors
    ///
    /// If that takes too long.
    pub fn wait_ok(&self) -> io::Result<()> {
        let whole = |node: &Redis| {
            node.cli(&["CLUSTER", "INFO"]).is_ok_and(|info| info.contains("cluster_state:ok"))
        };
        wait_until("a Redis cluster to be whole", AGREE_LIMIT, || {
            self.nodes.iter().filter(|node| node.daemon.runs()).all(whole)
        })
    }

    fn wait_acquainted(&self) -> io::Result<()> {
        let known = format!("cluster_known_nodes:{}\r", self.nodes.len());
        wait_until("Redis cluster nodes to know each other", AGREE_LIMIT, || {
            self.nodes.iter().all(|node| {
                let info = node.cli(&["CLUSTER", "INFO"]).unwrap_or_default();
                let nodes = node.cli(&["CLUSTER", "NODES"]).unwrap_or_default();
                info.contains(&known) && !nodes.contains("handshake")
            })
        })
    }

    fn share_slots(&self) -> io::Result<()> {
        for index in 0..self.masters {
            let first = SLOTS * index / self.masters;
            let last = SLOTS * (index + 1) / self.masters - 1;
            let (first, last) = (first.to_string(), last.to_string());
            expect_ok(&self.nodes[index], &["CLUSTER", "ADDSLOTSRANGE", &first, &last])?;
        }
        Ok(())
    }

    fn assign_replicas(&self) -> io::Result<()> {
        for (index, replica) in self.nodes.iter().enumerate().skip(self.masters) {
            let master = &self.nodes[index % self.masters];
            let id = master.cli(&["CLUSTER", "MYID"])?;
            expect_ok(replica, &["CLUSTER", "REPLICATE", id.trim()])?;
            wait_until("a Redis cluster's replica to be in sync", AGREE_LIMIT, || {
                replica.info("master_link_status").is_ok_and(|status| status == "up")
            })?;
        }
        Ok(())
    }

    fn wait_replicas_known(&self) -> io::Result<()> {
        let replicas = self.nodes.len() - self.masters;
        wait_until("Redis cluster nodes to know the replicas", AGREE_LIMIT, || {
            self.nodes.iter().all(|node| {
                let nodes = node.cli(&["CLUSTER", "NODES"]).unwrap_or_default();
                nodes.lines().filter(|line| line.contains("slave")).count() == replicas
            })
        })
    }
}

/// A node and the port on which it talks to the other nodes.
struct Node {
    redis: Redis,
    bus: u16,
}

fn start_node() -> io::Result<Node> {
    retry_on_clash(|| {
        let bus = free_port()?;
        let redis = RedisBuilder::default()
            .line("cluster-enabled yes")
            .line(format!("cluster-port {bus}"))
            .line(format!("cluster-node-timeout {NODE_TIMEOUT_MS}"))
            .start()?;
        Ok(Node { redis, bus })
    })
}

/// Gives each node an epoch of its own, which spares them the negotiation, and introduces all to
/// the first.
fn meet(nodes: &[Node]) -> io::Result<()> {
    for (index, node) in nodes.iter().enumerate() {
        let epoch = (index + 1).to_string();
        expect_ok(&node.redis, &["CLUSTER", "SET-CONFIG-EPOCH", &epoch])?;
    }
    let [first, others @ ..] = nodes else { return Ok(()) };
    for other in others {
        let (port, bus) = (other.redis.port().to_string(), other.bus.to_string());
        expect_ok(&first.redis, &["CLUSTER", "MEET", "127.0.0.1", &port, &bus])?;
    }
    Ok(())
}

fn expect_ok(redis: &Redis, arguments: &[&str]) -> io::Result<()> {
    let reply = redis.cli(arguments)?;
    match reply.trim() {
        "OK" => Ok(()),
        other => Err(io::Error::other(format!("{arguments:?}: {other}"))),
    }
}
