//! The description that a server gives of itself, and what follows from it.

use std::collections::HashMap;

use redis::aio::MultiplexedConnection;

use super::answer::field;
use super::settings::Settings;
use crate::error::{Error, ErrorKind};
use crate::url::Scheme;

/// The oldest major version whose scripts, users and protocol are what this store needs.
const OLDEST_MAJOR: u32 = 6;

/// A server as it was when it was entered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Server {
    pub(super) version: String,
    pub(super) is_master: bool,
    /// Whether it is a node of a cluster, if it says.
    pub(super) in_cluster: Option<bool>,
    /// Another with every start.
    pub(super) run_id: String,
    /// Another with every start and every promotion.
    pub(super) lineage: String,
    pub(super) replicas: u64,
    /// Whether it was promoted since it started.
    pub(super) was_promoted: bool,
    /// Whether it stops acknowledging when its replicas are out of reach.
    pub(super) needs_replicas: bool,
    pub(super) maxmemory_policy: String,
    /// In bytes; 0 if there is no limit.
    pub(super) maxmemory: u64,
    pub(super) used_memory: u64,
    /// Whether its last attempts to write to its disk failed.
    pub(super) disk_fails: bool,
    pub(super) keeps_log: bool,
    /// When the log is synced to disk, if we may know.
    pub(super) log_sync: Option<String>,
    /// Whether the log is not synced while a child process writes a snapshot.
    pub(super) skips_sync: bool,
}

impl Server {
    pub(super) async fn ask(
        connection: &mut MultiplexedConnection,
    ) -> Result<Self, redis::RedisError> {
        let info: String = redis::cmd("INFO").query_async(connection).await?;
        let mut server = Self::of_info(&info);
        if server.keeps_log {
            // Few users may read the configuration. Without it the weaker promise stands.
            let answer: Result<HashMap<String, String>, _> =
                redis::cmd("CONFIG").arg("GET").arg("*append*sync*").query_async(connection).await;
            match answer {
                Ok(mut settings) => {
                    server.skips_sync =
                        settings.get("no-appendfsync-on-rewrite").is_none_or(|skips| skips != "no");
                    server.log_sync = settings.remove("appendfsync");
                }
                Err(error) if error.is_io_error() => return Err(error),
                Err(_) => {}
            }
        }
        Ok(server)
    }

    fn of_info(info: &str) -> Self {
        let field = |name: &str| field(info, name);
        let text = |name: &str| field(name).unwrap_or_default().to_owned();
        let number = |name: &str| field(name).and_then(|n| n.parse().ok()).unwrap_or(0);
        let fails = |name: &str| field(name) == Some("err");
        Self {
            version: text("redis_version"),
            is_master: field("role") == Some("master"),
            in_cluster: field("cluster_enabled").map(|enabled| enabled == "1"),
            run_id: text("run_id"),
            lineage: text("master_replid"),
            replicas: number("connected_slaves"),
            was_promoted: text("master_replid2").chars().any(|c| c != '0'),
            needs_replicas: field("min_slaves_good_slaves").is_some(),
            maxmemory_policy: text("maxmemory_policy"),
            maxmemory: number("maxmemory"),
            used_memory: number("used_memory"),
            disk_fails: fails("aof_last_write_status") || fails("rdb_last_bgsave_status"),
            keeps_log: field("aof_enabled") == Some("1"),
            log_sync: None,
            skips_sync: false,
        }
    }

    /// Whether each write is on this server's disk when it is acknowledged.
    pub(super) fn syncs_each_write(&self) -> bool {
        self.keeps_log && self.log_sync.as_deref() == Some("always") && !self.skips_sync
    }

    /// Whether each write is on this server's disk some seconds later, and it can be seen when.
    pub(super) fn syncs_soon(&self) -> bool {
        self.keeps_log
            && !self.skips_sync
            && matches!(self.log_sync.as_deref(), Some("always" | "everysec"))
    }

    /// Whether this server alone has the data, as far as it can tell.
    pub(super) fn is_alone(&self) -> bool {
        self.replicas == 0 && !self.was_promoted
    }

    /// Refuses a URL that takes the server for what it is not.
    pub(super) fn check_scheme(&self, settings: &Settings) -> Result<(), Error> {
        let why = match (settings.url.scheme, self.in_cluster) {
            (Scheme::Redis, Some(true)) => "the server is a node of a cluster: use redis+cluster:",
            (Scheme::RedisCluster, Some(false)) => {
                "the server is not a node of a cluster (cluster-enabled is off): use redis:"
            }
            _ => return Ok(()),
        };
        Err(settings.url.unusable(why))
    }

    /// Refuses a server that may forget records without anybody noticing.
    pub(super) fn check(&self, settings: &Settings) -> Result<(), Error> {
        let refuse = |why: String| Err(settings.refused(ErrorKind::Unsafe, why));
        let major = self.version.split('.').next().and_then(|major| major.parse::<u32>().ok());
        if major.is_none_or(|major| major < OLDEST_MAJOR) {
            return refuse(format!("Redis {} is too old: use 6.0 or newer", self.version));
        }
        // The policies called volatile-* take only keys that expire, and ours do not. Those called
        // allkeys-* are refused even without a maxmemory: it can be set at any time.
        if self.maxmemory_policy.starts_with("allkeys") {
            return refuse(format!(
                "maxmemory-policy is {}, which may evict records: use noeviction",
                self.maxmemory_policy
            ));
        }
        if self.lineage.is_empty() {
            return refuse("INFO does not tell master_replid".into());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_info_says_is_understood() {
        let info = "# Server\r\nredis_version:7.0.15\r\n# Memory\r\nmaxmemory_policy:noeviction\r\n\
                    aof_enabled:1\r\nrole:master\r\nconnected_slaves:2\r\n\
                    min_slaves_good_slaves:2\r\nmaster_replid:abc\r\n\
                    master_replid2:0000000000000000000000000000000000000000\r\n";
        let server = Server::of_info(info);
        assert!(server.is_master && server.keeps_log && server.needs_replicas);
        assert_eq!((server.replicas, server.lineage.as_str()), (2, "abc"));
        assert!(!server.was_promoted && !server.is_alone() && !server.syncs_each_write());
    }

    #[test]
    fn only_a_log_that_is_known_to_be_synced_is_counted_on() {
        for (log_sync, skips_sync, each_write, soon) in [
            (Some("always"), false, true, true),
            (Some("everysec"), false, false, true),
            (Some("no"), false, false, false),
            (Some("always"), true, false, false),
            // The user may not read it.
            (None, false, false, false),
        ] {
            let log_sync = log_sync.map(str::to_owned);
            let server = Server { keeps_log: true, log_sync, skips_sync, ..Server::default() };
            assert_eq!((server.syncs_each_write(), server.syncs_soon()), (each_write, soon));
            let none = Server { keeps_log: false, ..server };
            assert!(!none.syncs_each_write() && !none.syncs_soon());
        }
    }

    #[test]
    fn an_empty_answer_is_no_master() {
        assert_eq!(Server::of_info(""), Server::default());
    }
}
