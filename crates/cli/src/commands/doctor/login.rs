//! The login, and who could read or overhear it.

use std::fs;
use std::net::IpAddr;
use std::os::unix::fs::MetadataExt;

use frazil::coord::{PASSWORD_VARIABLE, Scheme, StoreUrl};

use super::case::Case;
use super::report::{Row, aside};

const CHECK: &str = "login";

pub(super) async fn look(case: &Case) -> Vec<Row> {
    let url = case.url.clone();
    aside(CHECK, move || judge(&url)).await
}

fn judge(url: &StoreUrl) -> Vec<Row> {
    if url.hosts.is_empty() {
        return vec![Row::ok(CHECK, "none is needed: the store is on this machine")];
    }
    let mut rows = Vec::new();
    if url.password.is_some() {
        rows.push(Row::warn(
            CHECK,
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
        rows.push(Row::warn(
            CHECK,
            format!("what goes to {host} and comes from there can be read and changed on the way"),
            format!("use TLS: {} instead of {}", with_tls(url.scheme), without_tls(url.scheme)),
        ));
    }
    if rows.is_empty() {
        rows.push(Row::ok(CHECK, described(url)));
    }
    rows
}

/// As whom, without saying what may be a password.
pub(super) fn described(url: &StoreUrl) -> String {
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
fn exposed_file(url: &StoreUrl, option: &str) -> Option<Row> {
    let path = url.option(option)?;
    // One that is not there is told of when the store is opened.
    let mode = fs::metadata(path).ok()?.mode() & 0o077;
    (mode != 0).then(|| {
        Row::warn(
            CHECK,
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
    use super::super::report::Status;
    use super::*;

    #[test]
    fn a_password_in_the_url_and_a_way_without_tls_are_warned_of() {
        let statuses = |url: &str| -> Vec<Status> {
            judge(&url.parse().unwrap()).iter().map(Row::status).collect()
        };
        assert_eq!(statuses("redis://:secret@127.0.0.1"), [Status::Warn]);
        assert_eq!(statuses("etcd://app:secret@10.0.0.1"), [Status::Warn, Status::Warn]);
        for fine in ["redis://localhost", "zk://[::1]", "rediss://10.0.0.1", "file:/x", "memory:"] {
            assert_eq!(statuses(fine), [Status::Ok], "{fine}");
        }
    }
}
