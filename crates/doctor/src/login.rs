//! The login to the store, and what can be seen of it on the way.

use std::fs;
use std::net::IpAddr;
use std::os::unix::fs::MetadataExt;

use frazil_coord::{PASSWORD_VARIABLE, Scheme, StoreUrl};

use crate::check::apart;
use crate::finding::Finding;
use crate::node_settings::NodeSettings;

const LOGIN: &str = "login";

/// How the store is logged in to, and who else can: the check `login`.
pub async fn login(node: &NodeSettings) -> Vec<Finding> {
    let url = node.url.clone();
    apart(LOGIN, move || judge_login(&url)).await
}

fn judge_login(url: &StoreUrl) -> Vec<Finding> {
    if url.hosts.is_empty() {
        return vec![Finding::ok(LOGIN, "none is needed: the store is on this machine")];
    }
    let mut rows = Vec::new();
    if url.password.is_some() {
        rows.push(Finding::warn(
            LOGIN,
            "the URL has a password in it, which lists of processes and histories of shells show",
            format!(
                "put it into password_file=FILE of the URL (chmod 600 FILE), or into \
                 {PASSWORD_VARIABLE}"
            ),
        ));
    }
    rows.extend(
        ["password_file", "key"].into_iter().filter_map(|option| exposed_file(url, option)),
    );
    if let Some((host, _)) = url.hosts.iter().find(|(host, _)| !url.tls && !is_loopback(host)) {
        rows.push(Finding::warn(
            LOGIN,
            format!("what goes to {host} and comes from there can be read and changed on the way"),
            format!("use TLS: {} instead of {}", with_tls(url.scheme), without_tls(url.scheme)),
        ));
    }
    if rows.is_empty() {
        rows.push(Finding::ok(LOGIN, described(url)));
    }
    rows
}

/// As whom, without saying what may be a password.
pub(crate) fn described(url: &StoreUrl) -> String {
    // Whether the password can be read, opening the store tells.
    let has_password = url.secret().is_ok_and(|secret| secret.is_some());
    let who = match (&url.user, has_password) {
        (Some(user), true) => format!("as {user:?} with a password"),
        (_, true) => "with a password and no user".into(),
        (_, false) => "without a password".into(),
    };
    format!("{who}, {}", if url.tls { "by TLS" } else { "without TLS" })
}

/// A file with a secret that others than its owner can read.
fn exposed_file(url: &StoreUrl, option: &str) -> Option<Finding> {
    let path = url.option(option)?;
    // One that is not there is told of when the store is opened.
    let mode = fs::metadata(path).ok()?.mode() & 0o077;
    (mode != 0).then(|| {
        Finding::warn(
            LOGIN,
            format!("others than its owner can get at {path:?}, the {option} of the URL"),
            format!("chmod 600 {path}"),
        )
    })
}

fn is_loopback(host: &str) -> bool {
    host == "localhost" || host.parse().is_ok_and(|address: IpAddr| address.is_loopback())
}

const fn with_tls(scheme: Scheme) -> &'static str {
    match scheme {
        Scheme::Redis => "rediss:",
        Scheme::RedisSentinel => "rediss+sentinel:",
        Scheme::RedisCluster => "rediss+cluster:",
        Scheme::Etcd => "etcds:",
        _ => "zks:",
    }
}

const fn without_tls(scheme: Scheme) -> &'static str {
    match scheme {
        Scheme::Redis => "redis:",
        Scheme::RedisSentinel => "redis+sentinel:",
        Scheme::RedisCluster => "redis+cluster:",
        Scheme::Etcd => "etcd:",
        _ => "zk:",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Status;

    #[test]
    fn a_password_in_the_url_and_a_way_without_tls_are_warned_of() {
        let statuses = |url: &str| -> Vec<Status> {
            judge_login(&url.parse().unwrap()).iter().map(|found| found.status).collect()
        };
        assert_eq!(statuses("redis://:secret@127.0.0.1"), [Status::Warn]);
        assert_eq!(statuses("etcd://app:secret@10.0.0.1"), [Status::Warn, Status::Warn]);
        for fine in ["redis://localhost", "zk://[::1]", "rediss://10.0.0.1", "file:/x", "memory:"] {
            assert_eq!(statuses(fine), [Status::Ok], "{fine}");
        }
    }
}
