//! The store: whether it answers and how soon, the login, a directory of files, and what it promises.

use std::fs;
use std::net::IpAddr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use frazil::coord::time::boot_time;
use frazil::coord::{
    Error, ErrorKind, Leasing, PASSWORD_VARIABLE, Scheme, Severity, Store, StoreUrl,
};
use rustix::fs::{Access, access};
use rustix::process::geteuid;

use super::configuration::Case;
use super::host::ms;
use super::report::{Row, aside};
use crate::commands::place::next_step_after;

const STORE: &str = "store";
/// How often it is read to know how long that takes.
const READS: usize = 5;
/// Leases need far less, but a store that is this far away is in another region or overloaded.
const MEDIAN_MAX: Duration = Duration::from_millis(50);

/// Opens the store to read. What is not safe to use was reached all the same, and counts against its
/// guarantees.
pub(super) async fn reach(case: &Case, reached: &mut Option<Arc<dyn Store>>) -> Vec<Row> {
    let store = match frazil::coord::look(&case.url, &case.namespace).await {
        Ok(store) => store,
        Err(error) if error.kind() == ErrorKind::Unsafe => {
            let why = "it was reached, but nothing would be leased from it: see guarantees";
            return vec![Row::skipped(STORE, why), failed("guarantees", &error)];
        }
        Err(error) => return vec![failed(STORE, &error)],
    };
    let trips = match measure(store.as_ref()).await {
        Ok(trips) => trips,
        Err(error) => return vec![failed(STORE, &error)],
    };
    let row = judge_trips(case, &store.to_string(), trips);
    *reached = Some(store);
    vec![row]
}

/// How long reading meta took, the quickest first.
async fn measure(store: &dyn Store) -> Result<[Duration; READS], Error> {
    let mut trips = [Duration::ZERO; READS];
    for trip in &mut trips {
        let began = boot_time();
        match store.meta().await {
            Err(error) if error.kind().is_retryable() => return Err(error),
            // What it says is for another check.
            Ok(_) | Err(_) => *trip = boot_time().saturating_sub(began),
        }
    }
    trips.sort_unstable();
    Ok(trips)
}

fn judge_trips(case: &Case, store: &str, trips: [Duration; READS]) -> Row {
    let (median, worst) = (trips[READS / 2], trips[READS - 1]);
    let login = match case.url.hosts.is_empty() {
        true => String::new(),
        false => format!(" {}", described(&case.url)),
    };
    let detail = format!("{store} answers{login}: {} median, {} at worst", ms(median), ms(worst));
    let worst_max = case.effective_timing().heartbeat / 10;
    if median > MEDIAN_MAX || worst > worst_max {
        let fix = format!(
            "use a store that is nearer or less busy (median at most {}, worst at most a tenth of \
             the heartbeat), or a longer --heartbeat and --ttl",
            ms(MEDIAN_MAX)
        );
        return Row::warn(STORE, detail, fix);
    }
    Row::ok(STORE, detail)
}

/// The row of an error of the store.
pub(super) fn failed(check: &'static str, error: &Error) -> Row {
    let text = error.to_string();
    let fix = match next_step_after(error) {
        Some(step) => step,
        None => remedy(error.kind(), &text),
    };
    Row::fail(check, text, fix)
}

/// What to do about an error that says itself what is wrong.
fn remedy(kind: ErrorKind, text: &str) -> &'static str {
    let says = |word: &str| text.contains(word);
    match kind {
        ErrorKind::Unsafe if says("maxmemory-policy") => {
            "redis-cli CONFIG SET maxmemory-policy noeviction, and CONFIG REWRITE to keep it"
        }
        ErrorKind::Unsafe if says("too old") => "upgrade the server",
        ErrorKind::Unsafe if says("file system") => {
            "name a directory on a local disk with --store file:DIRECTORY"
        }
        ErrorKind::Unsafe if says("copied") => {
            "frazil store quarantine --adopt, if the original is not used any more"
        }
        ErrorKind::Unsafe if says("replica") => "name the master, or use redis+sentinel:",
        ErrorKind::InvalidConfig => "correct the URL: frazil doctor --help shows all it can say",
        ErrorKind::Corrupt => "do as it says, or see docs/guarantees.md",
        _ => "do as it says",
    }
}

const LOGIN: &str = "login";

pub(super) async fn look_at_login(case: &Case) -> Vec<Row> {
    let url = case.url.clone();
    aside(LOGIN, move || judge_login(&url)).await
}

fn judge_login(url: &StoreUrl) -> Vec<Row> {
    if url.hosts.is_empty() {
        return vec![Row::ok(LOGIN, "none is needed: the store is on this machine")];
    }
    let mut rows = Vec::new();
    if url.password.is_some() {
        rows.push(Row::warn(
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
        rows.push(Row::warn(
            LOGIN,
            format!("what goes to {host} and comes from there can be read and changed on the way"),
            format!("use TLS: {} instead of {}", with_tls(url.scheme), without_tls(url.scheme)),
        ));
    }
    if rows.is_empty() {
        rows.push(Row::ok(LOGIN, described(url)));
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

const DIRECTORY: &str = "directory";

pub(super) async fn look_at_directory(case: &Case) -> Vec<Row> {
    let directory = match case.url.scheme {
        Scheme::File => Some(case.url.path.as_str()),
        Scheme::Static => case.url.option("state"),
        _ => None,
    };
    let Some(directory) = directory.map(PathBuf::from) else {
        return vec![Row::skipped(DIRECTORY, "the store is not in files of this machine")];
    };
    let namespace = case.namespace.to_string();
    aside(DIRECTORY, move || judge_directory(&directory, &namespace)).await
}

fn judge_directory(directory: &Path, namespace: &str) -> Vec<Row> {
    // What is there of the way to the namespace's own directory.
    let whole = directory.join(namespace);
    let there = whole.ancestors().find(|path| path.exists()).unwrap_or(Path::new("."));
    let rights = Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK;
    if let Err(error) = access(there, rights) {
        let fix = format!(
            "run as its owner, chown it, or name another directory with --store file:DIRECTORY; \
             ls -ld {} shows whose it is",
            there.display()
        );
        let detail = format!("{} cannot be written by this user: {error}", there.display());
        return vec![Row::fail(DIRECTORY, detail, fix)];
    }
    let is_new = !directory.exists();
    if is_new {
        let detail = format!("{} is not there yet, and can be created", directory.display());
        return vec![Row::ok(DIRECTORY, detail)];
    }
    let mut rows: Vec<Row> =
        [directory, &whole].into_iter().filter_map(exposed_directory).collect();
    if rows.is_empty() {
        rows.push(Row::ok(DIRECTORY, format!("{} is ours alone to write", directory.display())));
    }
    rows
}

/// What is wrong with whom a directory belongs to.
fn exposed_directory(path: &Path) -> Option<Row> {
    let data = fs::metadata(path).ok()?;
    let (owner, us) = (data.uid(), geteuid().as_raw());
    let shown = path.display();
    if data.mode() & 0o022 != 0 {
        let detail = format!("others than its owner can write into {shown}");
        return Some(Row::warn(DIRECTORY, detail, format!("chmod 700 {shown}")));
    }
    if owner != us {
        let detail = format!(
            "{shown} belongs to user {owner} and this is user {us}: what one writes the other may \
             not be able to read"
        );
        return Some(Row::warn(
            DIRECTORY,
            detail,
            format!("run as user {owner}, or chown -R {us} {shown}"),
        ));
    }
    None
}

const GUARANTEES: &str = "guarantees";

pub(super) async fn look_at_guarantees(case: &Case, store: &dyn Store) -> Vec<Row> {
    let promised = store.guarantees();
    let detail = format!("{}: uniqueness is {}", promised.store, promised.uniqueness.word());
    let mut rows = vec![Row::ok(GUARANTEES, detail)];
    match store.diagnose(&case.effective_timing()).await {
        Ok(findings) => rows.extend(findings.into_iter().map(|found| match found.severity {
            Severity::Warning => Row::warn(GUARANTEES, found.what, found.fix),
            _ => Row::fail(GUARANTEES, found.what, found.fix),
        })),
        Err(error) => rows.push(failed(GUARANTEES, &error)),
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::super::report::Status;
    use super::*;

    #[test]
    fn a_password_in_the_url_and_a_way_without_tls_are_warned_of() {
        let statuses = |url: &str| -> Vec<Status> {
            judge_login(&url.parse().unwrap()).iter().map(Row::status).collect()
        };
        assert_eq!(statuses("redis://:secret@127.0.0.1"), [Status::Warn]);
        assert_eq!(statuses("etcd://app:secret@10.0.0.1"), [Status::Warn, Status::Warn]);
        for fine in ["redis://localhost", "zk://[::1]", "rediss://10.0.0.1", "file:/x", "memory:"] {
            assert_eq!(statuses(fine), [Status::Ok], "{fine}");
        }
    }
}
