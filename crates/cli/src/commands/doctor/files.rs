//! The files that the configuration names: API keys and certificates.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use frazil::coord::UnixMs;
use frazil::coord::time::unix_ms;
use frazil_server::keys::{self, KeyEntry, KeySource};
use frazil_server::{DeclaredScope, PeerSettings, PeerWarning, Secrecy, TlsFiles, Validity};

use super::report::{Row, aside};
use crate::args::ServeArgs;
use crate::config::tls_files;
use crate::words::{count, instant};

const CHECK: &str = "files";
const DAY_MS: u64 = 86_400_000;
/// Time to get another one and to hand it out, holidays included.
const SOON_MS: u64 = 14 * DAY_MS;

pub(super) async fn look(args: &ServeArgs) -> Vec<Row> {
    let (keys, tls, peers) = (args.keys.clone(), tls_files(args), Peers::of(args));
    let peer_key = args.peer.peer_key_file.clone();
    aside(CHECK, move || {
        let now = unix_ms();
        let mut rows = match &keys {
            None => Vec::new(),
            Some(KeySource::File(path)) => of_keys(path, now),
            Some(KeySource::Store) => {
                let why = "the API keys are in the store: see frazil key ls --keys store";
                vec![Row::skipped(CHECK, why)]
            }
        };
        if let Some(KeySource::File(path)) = &keys {
            rows.extend(peers.rows(path));
        }
        rows.extend(peer_key.into_iter().filter_map(|path| exposed(&path)));
        rows.extend(tls.into_iter().flat_map(|files| of_tls(&files, now)));
        if rows.is_empty() {
            rows.push(Row::skipped(CHECK, "neither API keys nor certificates are named"));
        }
        rows
    })
    .await
}

/// How nodes ask each other for strict scopes.
struct Peers {
    scopes: Vec<DeclaredScope>,
    key_file: Option<PathBuf>,
    ca: Option<PathBuf>,
}

impl Peers {
    fn of(args: &ServeArgs) -> Self {
        let scopes = args.scopes.iter().filter_map(|text| DeclaredScope::parse(text).ok());
        let (key_file, ca) = (args.peer.peer_key_file.clone(), args.peer.peer_ca.clone());
        Self { scopes: scopes.collect(), key_file, ca }
    }

    /// What a server warns of when it starts.
    fn rows(&self, keys: &Path) -> Vec<Row> {
        if unopened(keys).is_some() {
            return Vec::new();
        }
        // What is wrong with the file of keys is told above.
        let Ok(keys) = keys::read(keys) else { return Vec::new() };
        let key_file = self.key_file.as_deref().filter(|path| unopened(path).is_none());
        let (scopes, ca) = (self.scopes.as_slice(), self.ca.as_deref());
        let settings = PeerSettings { scopes, keys: Some(&keys), key_file, ca };
        let row = |PeerWarning { detail, fix }| Row::warn(CHECK, detail, fix);
        settings.warnings().into_iter().map(row).collect()
    }
}

fn of_keys(path: &Path, now: UnixMs) -> Vec<Row> {
    if let Some(row) = unopened(path) {
        return vec![row];
    }
    let shown = path.display();
    let mut rows = match keys::read(path) {
        Ok(entries) => judge_keys(path, &entries, now),
        Err(error) => {
            let fix = format!("correct {shown}: frazil key new prints what an entry looks like");
            let problems = error.problems.into_iter();
            problems.map(|problem| Row::fail(CHECK, problem, fix.clone())).collect()
        }
    };
    rows.extend(exposed(path));
    rows
}

fn judge_keys(path: &Path, entries: &[KeyEntry], now: UnixMs) -> Vec<Row> {
    let shown = path.display();
    if entries.is_empty() {
        let fix = format!("frazil key new --name NAME --role ids --keys {shown}");
        return vec![Row::warn(CHECK, format!("{shown} has no keys: nobody gets IDs"), fix)];
    }
    let mut rows = vec![Row::ok(CHECK, format!("{shown}: {}", count(entries.len(), "API key")))];
    rows.extend(entries.iter().filter_map(|entry| judge_key(path, entry, now)));
    rows
}

fn judge_key(path: &Path, entry: &KeyEntry, now: UnixMs) -> Option<Row> {
    let (KeyEntry { id, name, .. }, until) = (entry, entry.expires_ms()?);
    let (shown, at) = (path.display(), instant(until));
    let revoke = format!("frazil key revoke {id} --keys {shown}");
    // What `key rotate` makes has the end of the old one.
    let new = format!("frazil key new --name {name} --role ROLE --keys {shown}");
    if until <= now {
        let detail = format!("the key {id} of {name} ended at {at}: it opens nothing");
        return Some(Row::warn(CHECK, detail, format!("{revoke}; if it is missed, {new}")));
    }
    (until <= now.saturating_add(SOON_MS)).then(|| {
        let detail = format!("the key {id} of {name} ends at {at}");
        Row::warn(CHECK, detail, format!("{new}; and {revoke} when nobody uses it any more"))
    })
}

fn of_tls(files: &TlsFiles, now: UnixMs) -> Vec<Row> {
    let named = [Some(&files.cert), Some(&files.key), files.client_ca.as_ref()];
    let unopened: Vec<Row> =
        named.into_iter().flatten().filter_map(|path| unopened(path)).collect();
    if !unopened.is_empty() {
        return unopened;
    }
    let mut rows = Vec::new();
    match files.check() {
        Ok(()) => rows.push(Row::ok(
            CHECK,
            format!("{} and its private key can be used", files.cert.display()),
        )),
        Err(error) => rows.push(Row::fail(
            CHECK,
            error.to_string(),
            "name a certificate and its own private key as PEM: --tls-cert, --tls-key, \
             --tls-client-ca",
        )),
    }
    for path in [Some(&files.cert), files.client_ca.as_ref()].into_iter().flatten() {
        // Whether there are certificates was told above.
        let found = Validity::of_file(path).unwrap_or_default();
        let is_chain = path == &files.cert;
        rows.extend(judge_validity(path, &found, is_chain, now));
    }
    rows.extend(exposed(&files.key));
    rows
}

/// Of a chain all must be valid; of authorities one is enough.
fn judge_validity(path: &Path, found: &[Validity], is_chain: bool, now: UnixMs) -> Option<Row> {
    let shown = path.display();
    let first_end = found.iter().map(|one| one.until).min()?;
    let is_good = |one: &Validity| one.from <= now && now < one.until;
    let is_fatal = is_chain || !found.iter().any(is_good);
    let wrong = |detail: String, fix: &str| match is_fatal {
        true => Row::fail(CHECK, detail, fix),
        false => Row::warn(CHECK, detail, fix),
    };
    let renew = "get a new one, put it there, and kill -HUP the server";
    if first_end <= now {
        let detail = format!("a certificate of {shown} ended at {}", instant(first_end));
        return Some(wrong(detail, renew));
    }
    if let Some(early) = found.iter().find(|one| one.from > now) {
        let detail = format!("a certificate of {shown} begins at {} only", instant(early.from));
        return Some(wrong(detail, "set the clock right, or wait until then"));
    }
    let left = first_end - now;
    let (at, days) = (instant(first_end), count(left / DAY_MS, "day"));
    let detail = format!("{shown} is valid until {at}, {days} from now");
    Some(match left {
        ..=SOON_MS => Row::warn(CHECK, detail, renew),
        _ => Row::ok(CHECK, detail),
    })
}

/// For what is not looked into.
fn unopened(path: &Path) -> Option<Row> {
    let shown = path.display();
    let why = match fs::metadata(path) {
        // To open a pipe may wait for ever, and takes away what is in it.
        Ok(about) if !about.is_file() && !about.is_dir() => {
            format!("{shown} is no regular file, and can perhaps be read once only")
        }
        Ok(about) if about.is_file() && File::open(path).is_ok() => return None,
        _ => format!("{shown} cannot be read: see configuration"),
    };
    Some(Row::skipped(CHECK, why))
}

/// A file that others than its owner can get at.
fn exposed(path: &Path) -> Option<Row> {
    let found = frazil_server::exposed(path, Secrecy::Secret)?;
    Some(Row::warn(CHECK, found.what, found.fix))
}

#[cfg(test)]
mod tests {
    use super::super::report::Status;
    use super::*;

    const NOW: UnixMs = 1_800_000_000_000;

    #[test]
    fn a_chain_fails_with_its_first_end_and_authorities_with_their_last() {
        let ending = |until: UnixMs| Validity { from: 0, until };
        let early = Validity { from: NOW + 1, until: u64::MAX };
        let (gone, soon, good) =
            (ending(NOW), ending(NOW + SOON_MS), ending(NOW + SOON_MS + DAY_MS));
        for (found, chain, authorities) in [
            (&[good][..], Status::Ok, Status::Ok),
            (&[good, soon], Status::Warn, Status::Warn),
            (&[good, gone], Status::Fail, Status::Warn),
            (&[gone], Status::Fail, Status::Fail),
            (&[early], Status::Fail, Status::Fail),
            (&[early, good], Status::Fail, Status::Warn),
        ] {
            for (is_chain, status) in [(true, chain), (false, authorities)] {
                let row = judge_validity(Path::new("x"), found, is_chain, NOW).unwrap();
                assert_eq!(row.status(), status, "{found:?} {is_chain} {row:?}");
            }
        }
        assert!(judge_validity(Path::new("x"), &[], true, NOW).is_none());
    }

    #[test]
    fn keys_that_end_are_warned_of_and_others_are_counted() {
        let entry = |expires: Option<UnixMs>| {
            let key = keys::NewKey::mint().unwrap();
            let entry = KeyEntry::of(&key, "orders", vec![keys::Role::Ids]);
            KeyEntry { expires: expires.map(instant), ..entry }
        };
        let statuses = |entries: &[KeyEntry]| -> Vec<Status> {
            judge_keys(Path::new("x"), entries, NOW).iter().map(Row::status).collect()
        };
        assert_eq!(statuses(&[]), [Status::Warn]);
        let lasting = [entry(None), entry(Some(NOW + SOON_MS + 1))];
        assert_eq!(statuses(&lasting), [Status::Ok]);
        let ending = [entry(Some(NOW)), entry(Some(NOW + SOON_MS))];
        assert_eq!(statuses(&ending), [Status::Ok, Status::Warn, Status::Warn]);
    }
}
