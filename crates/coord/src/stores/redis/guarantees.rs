//! The guarantees of Redis, as it is set up.

use super::session::Session;
use super::settings::Durability;
use crate::finding::{Finding, sentences};
use crate::guarantees::{Guarantees, Strength};
use crate::rules::STORE_CLOCK_BACK_MS as SKEW_MS;
use crate::url::Scheme;

pub(super) fn guarantees(session: &Session) -> Guarantees {
    let (settings, server) = (&session.settings, session.server());
    let is_single = settings.url.scheme == Scheme::Redis;
    let is_sure = is_single && server.syncs_each_write() && server.is_alone();
    let isolation = settings.isolation;
    let settles = is_single && server.syncs_soon() && server.is_alone();
    let because = match (is_sure, is_single) {
        (true, _) => "one server carries out each step at once and has it on disk before it \
                      answers; a new holder starts above all that holders before it may use"
            .to_owned(),
        (false, true) if settles => format!(
            "a worker that was left without a release is used once its log is on disk, and nobody \
             uses more than 30 s beyond what is; after a restart new holders start above all that \
             may have been lost, some seconds later; this counts on a server clock that does not \
             go back by more than {SKEW_MS} ms"
        ),
        (false, true) => format!(
            "after a restart, when the last writes may be missing, new holders start above all that \
             any holder before the restart may use: a window later; this counts on a server clock \
             that does not go back by more than {SKEW_MS} ms"
        ),
        (false, false) => format!(
            "after a fail-over, when the last writes may be missing, new holders start above all \
             that any holder before it may use; this counts on server clocks less than {SKEW_MS} ms \
             apart, and on an old master that acknowledges nothing later than {isolation:?} after \
             its successor was promoted"
        ),
    };
    let leadership = match is_sure {
        true => {
            "one at a time while the server's clock does not jump; a paused leader may believe \
                 in itself until it looks again"
                .to_owned()
        }
        false => "two may believe to lead for a while after a restart or a fail-over".to_owned(),
    };
    let token = match is_sure {
        true => "strictly increasing",
        false => "increasing; after lost writes best effort, by the server's clock",
    };
    Guarantees {
        store: described(session),
        uniqueness: if is_sure { Strength::Unconditional } else { Strength::Conditional },
        because,
        leadership,
        token: token.into(),
        voided_by: voided_by(is_single),
        warnings: sentences(&weaknesses(session)),
    }
}

fn described(session: &Session) -> String {
    let (settings, server) = (&session.settings, session.server());
    let setup = match settings.url.scheme {
        Scheme::RedisSentinel => "behind Sentinel",
        Scheme::RedisCluster => "in a cluster",
        _ => "on one server",
    };
    let log = match (server.keeps_log, server.log_sync.as_deref()) {
        (false, _) => "no append-only file".to_owned(),
        (true, Some(sync)) => format!("append-only file synced {sync}"),
        (true, None) => "append-only file".to_owned(),
    };
    let durability = match settings.durability {
        Durability::Wait(count) => format!("{count} replicas waited for"),
        Durability::Async if settings.url.scheme != Scheme::Redis && server.syncs_soon() => {
            "replicas waited for by takeovers".to_owned()
        }
        Durability::Async => "replicas not waited for".to_owned(),
    };
    format!("Redis {} {setup}, {log}, {durability}", server.version)
}

fn voided_by(is_single: bool) -> Vec<String> {
    let mut voids = vec![
        "loss of the server's data: FLUSHALL, deleted keys, a lost disk, an old snapshot loaded",
        "a change of maxmemory-policy to one that evicts",
    ];
    match is_single {
        true => voids.extend([
            "a change of appendfsync while the server runs",
            "an address that comes to lead to another server",
        ]),
        false => voids.extend([
            "an old master that is isolated for longer than the option isolation",
            "clocks of servers that are further apart",
            "clients with different values of isolation",
            "a replica that was given up with frazil store forget-replica, and is promoted with what \
             it had then",
        ]),
    }
    voids.into_iter().map(str::to_owned).collect()
}

/// What weakens the promises as the server is set up.
fn weaknesses(session: &Session) -> Vec<Finding> {
    let (settings, server) = (&session.settings, session.server());
    let is_single = settings.url.scheme == Scheme::Redis;
    let mut found = Vec::new();
    if !server.keeps_log {
        found.push(Finding::warning(
            "no append-only file: a restart forgets",
            "set appendonly yes (redis-cli CONFIG SET appendonly yes, and CONFIG REWRITE to keep it)",
        ));
    } else if server.skips_sync {
        found.push(Finding::warning(
            "no-appendfsync-on-rewrite is on: a crash of the machine forgets all since a snapshot \
             began, so new workers wait for a window after each restart",
            "redis-cli CONFIG SET no-appendfsync-on-rewrite no, and CONFIG REWRITE to keep it",
        ));
    } else if is_single && !server.syncs_each_write() {
        found.push(match &server.log_sync {
            Some(sync) => Finding::warning(
                format!(
                    "appendfsync is {sync}: a crash of the machine forgets the last writes, so new \
                     workers wait for {} after each restart",
                    if server.syncs_soon() { "some seconds" } else { "a window" }
                ),
                "set it to always (redis-cli CONFIG SET appendfsync always, and CONFIG REWRITE to \
                 keep it)",
            ),
            None => Finding::warning(
                "appendfsync may not be read, so the worst is assumed",
                "give the user +config|get (ACL SETUSER NAME +config|get)",
            ),
        });
    }
    if is_single && server.syncs_each_write() && !server.is_alone() {
        found.push(Finding::warning(
            "the server has or had replicas, and a restart cannot be told from a promotion: new \
             workers wait after either",
            "for fail-over use redis+sentinel:",
        ));
    }
    if matches!(settings.durability, Durability::Wait(_)) && server.replicas == 0 {
        found.push(Finding::danger(
            "replicas are waited for and none is connected: nothing succeeds",
            "connect one, or leave out the option durability",
        ));
    }
    if settings.url.scheme == Scheme::RedisSentinel && !server.needs_replicas {
        found.push(Finding::warning(
            "min-replicas-to-write is 0: an isolated master acknowledges without end",
            "set it to 1, and min-replicas-max-lag to less than the option isolation",
        ));
    }
    found
}

/// What else whoever looks after the server should know.
pub(super) fn findings(session: &Session) -> Vec<Finding> {
    let (settings, server) = (&session.settings, session.server());
    let mut found = weaknesses(session);
    match server.maxmemory_policy.as_str() {
        "noeviction" => {}
        "" => found.push(Finding::warning(
            "INFO does not tell maxmemory_policy, so whether records can be evicted is not known",
            "see that the service evicts nothing (noeviction)",
        )),
        // Those that evict any key are refused when the store is entered.
        other => found.push(Finding::warning(
            format!(
                "maxmemory-policy is {other}: it takes only keys that expire, which ours do \
                     not, but it is one word away from one that takes all"
            ),
            "redis-cli CONFIG SET maxmemory-policy noeviction",
        )),
    }
    if server.maxmemory > 0 && server.used_memory >= server.maxmemory / 10 * 9 {
        found.push(Finding::warning(
            format!(
                "{} of {} bytes of maxmemory are used: when all are, nothing can be renewed",
                server.used_memory, server.maxmemory
            ),
            "raise maxmemory, or give Frazil a server of its own",
        ));
    }
    if server.disk_fails {
        found.push(Finding::danger(
            "the server cannot write to its disk, and then refuses writes",
            "see its log, and make room on its disk",
        ));
    }
    let is_single = settings.url.scheme == Scheme::Redis;
    if server.replicas > 0 && is_single && settings.durability == Durability::Async {
        found.push(Finding::warning(
            "replicas are not waited for: if one is promoted the last writes can be lost, and new \
             workers wait for a window",
            "add durability=wait:N to the URL, with the number of replicas, or use redis+sentinel:",
        ));
    }
    if server.replicas > 0 && !is_single && !server.syncs_soon() && server.log_sync.is_some() {
        found.push(Finding::warning(
            "the log is not synced, so that a fail-over can lose any write: holders that were away \
             for longer than their time to live do not go on after one",
            "set appendfsync to everysec (redis-cli CONFIG SET appendfsync everysec, and CONFIG \
             REWRITE to keep it)",
        ));
    }
    found
}
