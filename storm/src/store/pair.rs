//! A Redis master and its replica under sentinels, which can be made to lose what was acknowledged.

use std::collections::BTreeSet;
use std::io;
use std::time::Duration;

use frazil_rig::{AppendOnly, Redis, Sentinels, wait_until};

/// How long the servers may take to agree.
const AGREED: Duration = Duration::from_secs(30);
/// Where workers are.
const RECORDS: &str = "{frazil:default}:w";

#[derive(Debug)]
pub(crate) struct Pair {
    /// Two, and a third where a replica is to be lost.
    servers: Vec<Redis>,
    sentinels: Sentinels,
}

impl Pair {
    pub(super) fn start(replicas: usize, sync: AppendOnly) -> io::Result<Self> {
        let builder = || Redis::builder().persistent(sync);
        let mut servers = vec![builder().start()?];
        for _ in 0..replicas {
            servers.push(builder().replica_of(&servers[0]).start()?);
        }
        let sentinels = Sentinels::start(&servers[0])?;
        Ok(Self { servers, sentinels })
    }

    /// With an old master that is taken to be silent soon, so that newcomers wait for seconds.
    pub(super) fn url(&self) -> String {
        format!("{}?isolation=2s", self.sentinels.url())
    }

    /// As it is without options.
    pub(super) fn plain_url(&self) -> String {
        self.sentinels.url()
    }

    /// The master and the first replica, as the sentinels see it.
    fn roles(&self) -> io::Result<(&Redis, &Redis)> {
        let port = self.sentinels.master_port()?;
        let is_master = |redis: &&Redis| redis.port() == port;
        let master = self.servers.iter().find(is_master);
        let replica = self.servers.iter().find(|redis| !is_master(redis));
        master.zip(replica).ok_or_else(|| io::Error::other(format!("nobody knows port {port}")))
    }

    /// The address of the first server that is not the master, whether it runs or not.
    pub(crate) fn follower(&self) -> io::Result<String> {
        Ok(self.roles()?.1.address())
    }

    /// Kills a replica, and waits until the master misses it; its port.
    pub(crate) fn lose_replica(&self) -> io::Result<u16> {
        let (master, replica) = self.roles()?;
        let left = (self.servers.len() - 2).to_string();
        replica.kill();
        wait_until("the master to miss a replica", AGREED, || {
            master.info("connected_slaves").is_ok_and(|count| count == left)
        })?;
        Ok(replica.port())
    }

    /// Lets nothing more reach the replica: it is thrown out, and has a name that is not known.
    pub(crate) fn cut_off(&self) -> io::Result<()> {
        let (master, replica) = self.roles()?;
        wait_until("the replica to have all", AGREED, || {
            let offset = |redis: &Redis| redis.info("master_repl_offset").ok();
            offset(replica).is_some() && offset(replica) == offset(master)
        })?;
        log_in_as(replica, "nobody", "wrong")?;
        master.cli(&["CLIENT", "KILL", "TYPE", "replica"])?;
        wait_until("the replica to be cut off", AGREED, || {
            replica.info("master_link_status").is_ok_and(|status| status == "down")
        })
    }

    /// Kills the master, and waits until the replica is in its place. How many tenures the one knew
    /// and the other does not.
    pub(crate) fn fail_over(&self) -> io::Result<u64> {
        let (master, replica) = self.roles()?;
        let known = tenures(master)?;
        master.kill();
        self.sentinels.wait_for_failover(master.port())?;
        wait_until("the replica to be a master", AGREED, || {
            replica.info("role").is_ok_and(|role| role == "master")
        })?;
        let kept = tenures(replica)?;
        Ok(known.difference(&kept).count() as u64)
    }

    /// Starts the old master again, as a replica of the new one.
    pub(crate) fn rejoin(&self) -> io::Result<()> {
        let (master, old) = self.roles()?;
        log_in_as(master, "", "")?;
        old.restart()?;
        // Sentinels write down what servers are set to.
        log_in_as(old, "", "")?;
        let port = master.port().to_string();
        old.cli(&["REPLICAOF", "127.0.0.1", &port])?;
        wait_until("the old master to follow", AGREED, || {
            old.info("master_link_status").is_ok_and(|status| status == "up")
        })?;
        wait_until("the sentinels to know the replica", AGREED, || {
            self.sentinels.nodes().iter().all(|sentinel| {
                let known = sentinel.cli(&["SENTINEL", "REPLICAS", "frazil"]).unwrap_or_default();
                let lines: Vec<&str> = known.lines().collect();
                lines.windows(2).any(|pair| pair == ["flags", "slave"])
                    && lines.windows(2).any(|pair| pair == ["master-link-status", "ok"])
            })
        })
    }
}

/// As whom a replica logs in to its master.
fn log_in_as(redis: &Redis, user: &str, password: &str) -> io::Result<()> {
    redis.cli(&["CONFIG", "SET", "masteruser", user])?;
    redis.cli(&["CONFIG", "SET", "masterauth", password]).map(drop)
}

/// Worker and token of every tenure that a server has a record of.
fn tenures(redis: &Redis) -> io::Result<BTreeSet<(String, u64)>> {
    let text = redis.cli(&["HGETALL", RECORDS])?;
    let lines: Vec<&str> = text.lines().collect();
    let tenures = lines.chunks(2).filter_map(|pair| {
        let [name, record] = pair else { return None };
        let record: serde_json::Value = serde_json::from_str(record).ok()?;
        Some(((*name).to_owned(), record["token"].as_u64()?))
    });
    Ok(tenures.collect())
}
