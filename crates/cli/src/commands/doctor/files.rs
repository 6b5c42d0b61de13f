//! The files that the configuration names: API keys and certificates.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use frazil::coord::UnixMs;
use frazil::coord::time::unix_ms;
use frazil_server::keys::{self, KeyEntry};
use frazil_server::{TlsFiles, Validity};

use super::report::{Row, aside};
use crate::args::ServeArgs;
use crate::config::tls_files;
use crate::words::{count, instant};

const CHECK: &str = "files";
const DAY_MS: u64 = 86_400_000;
/// Time to get another one and to hand it out, holidays included.
const SOON_MS: u64 = 14 * DAY_MS;
/// What others than the owner and its group can do, and that its group can write.
const EXPOSED: u32 = 0o027;

pub(super) async fn look(args: &ServeArgs) -> Vec<Row> {
    let (keys, tls) = (args.keys.clone(), tls_files(args));
    aside(CHECK, move || {
        let now = unix_ms();
        let mut rows = keys.map_or_else(Vec::new, |path| of_keys(&path, now));
        rows.extend(tls.into_iter().flat_map(|files| of_tls(&files, now)));
        if rows.is_empty() {
            rows.push(Row::skipped(CHECK, "neither API keys nor certificates are named"));
        }
        rows
    })
    .await
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
        let fix = format!("frazil key new --name NAME --role ids --file {shown}");
        return vec![Row::warn(CHECK, format!("{shown} has no keys: nobody gets Ids"), fix)];
    }
    let mut rows = vec![Row::ok(CHECK, format!("{shown}: {}", count(entries.len(), "API key")))];
    rows.extend(entries.iter().filter_map(|entry| judge_key(path, entry, now)));
    rows
}

fn judge_key(path: &Path, entry: &KeyEntry, now: UnixMs) -> Option<Row> {
    let (KeyEntry { id, name, .. }, until) = (entry, entry.expires_ms()?);
    let (shown, at) = (path.display(), instant(until));
    let revoke = format!("frazil key revoke {id} --file {shown}");
    // What `key rotate` makes has the end of the old one.
    let new = format!("frazil key new --name {name} --role ROLE --file {shown}");
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
    let mode = fs::metadata(path).ok()?.mode();
    (mode & EXPOSED != 0).then(|| {
        let shown = path.display();
        let detail = format!("others than its owner can read or change {shown}");
        Row::warn(CHECK, detail, format!("chmod 600 {shown}"))
    })
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
