//! The files that the configuration names: API keys and certificates.

use std::fs::{self, File};
use std::path::Path;

use frazil::coord::UnixMs;
use frazil_doctor::Finding;
use frazil_wire::words::{count, instant};

use super::{Config, TlsFiles};
use crate::cluster::peers::{PeerSettings, PeerWarning};
use crate::keys::{self, KeyEntry, KeySource};
use crate::{Secrecy, Validity, exposed};

const CHECK: &str = "files";
const DAY_MS: u64 = 86_400_000;
/// Time to get another one and to hand it out, holidays included.
const SOON_MS: u64 = 14 * DAY_MS;

impl Config {
    /// Whether the files that this names can be used, and how long: the check `files`. Blocks while they
    /// are read.
    #[must_use]
    pub fn diagnose_files(&self, now: UnixMs) -> Vec<Finding> {
        let mut findings = match &self.keys {
            None => Vec::new(),
            Some(KeySource::File(path)) => {
                let mut findings = of_keys(path, now);
                findings.extend(self.diagnose_peers(path));
                findings
            }
            Some(KeySource::Store) => {
                let why = "the API keys are in the store: see frazil key ls --keys store";
                vec![Finding::skipped(CHECK, why)]
            }
        };
        findings.extend(self.peer_key_file.as_deref().and_then(open_to_others));
        findings.extend(self.tls.iter().flat_map(|files| of_tls(files, now)));
        if findings.is_empty() {
            let why = "neither API keys nor certificates are named";
            findings.push(Finding::skipped(CHECK, why));
        }
        findings
    }

    /// How nodes ask each other for strict scopes: what a server warns of when it starts.
    fn diagnose_peers(&self, keys: &Path) -> Vec<Finding> {
        if unopened(keys).is_some() {
            return Vec::new();
        }
        // What is wrong with the file of keys is told above.
        let Ok(keys) = keys::read(keys) else { return Vec::new() };
        let key_file = self.peer_key_file.as_deref().filter(|path| unopened(path).is_none());
        let (scopes, ca) = (self.scopes.as_slice(), self.peer_ca.as_deref());
        let settings = PeerSettings { scopes, keys: Some(&keys), key_file, ca };
        let finding = |PeerWarning { detail, fix }| Finding::warn(CHECK, detail, fix);
        settings.warnings().into_iter().map(finding).collect()
    }
}

fn of_keys(path: &Path, now: UnixMs) -> Vec<Finding> {
    if let Some(finding) = unopened(path) {
        return vec![finding];
    }
    let shown = path.display();
    let mut findings = match keys::read(path) {
        Ok(entries) => judge_keys(path, &entries, now),
        Err(error) => {
            let fix = format!("correct {shown}: frazil key new prints what an entry looks like");
            let problems = error.problems.into_iter();
            problems.map(|problem| Finding::fail(CHECK, problem, fix.clone())).collect()
        }
    };
    findings.extend(open_to_others(path));
    findings
}

fn judge_keys(path: &Path, entries: &[KeyEntry], now: UnixMs) -> Vec<Finding> {
    let shown = path.display();
    if entries.is_empty() {
        let fix = format!("frazil key new --name NAME --role ids --keys {shown}");
        return vec![Finding::warn(CHECK, format!("{shown} has no keys: nobody gets IDs"), fix)];
    }
    let mut findings =
        vec![Finding::ok(CHECK, format!("{shown}: {}", count(entries.len(), "API key")))];
    findings.extend(entries.iter().filter_map(|entry| judge_key(path, entry, now)));
    findings
}

fn judge_key(path: &Path, entry: &KeyEntry, now: UnixMs) -> Option<Finding> {
    let (KeyEntry { id, name, .. }, until) = (entry, entry.expires_ms()?);
    let (shown, at) = (path.display(), instant(until));
    let revoke = format!("frazil key revoke {id} --keys {shown}");
    // What `key rotate` makes has the end of the old one.
    let new = format!("frazil key new --name {name} --role ROLE --keys {shown}");
    if until <= now {
        let detail = format!("the key {id} of {name} ended at {at}: it opens nothing");
        return Some(Finding::warn(CHECK, detail, format!("{revoke}; if it is missed, {new}")));
    }
    (until <= now.saturating_add(SOON_MS)).then(|| {
        let detail = format!("the key {id} of {name} ends at {at}");
        Finding::warn(CHECK, detail, format!("{new}; and {revoke} when nobody uses it any more"))
    })
}

fn of_tls(files: &TlsFiles, now: UnixMs) -> Vec<Finding> {
    let named = [Some(&files.cert), Some(&files.key), files.client_ca.as_ref()];
    let unopened: Vec<Finding> =
        named.into_iter().flatten().filter_map(|path| unopened(path)).collect();
    if !unopened.is_empty() {
        return unopened;
    }
    let mut findings = Vec::new();
    match files.check() {
        Ok(()) => findings.push(Finding::ok(
            CHECK,
            format!("{} and its private key can be used", files.cert.display()),
        )),
        Err(error) => findings.push(Finding::fail(
            CHECK,
            format!("{error:#}"),
            "name a certificate and its own private key as PEM: --tls-cert, --tls-key, \
             --tls-client-ca",
        )),
    }
    for path in [Some(&files.cert), files.client_ca.as_ref()].into_iter().flatten() {
        // Whether there are certificates was told above.
        let found = Validity::of_file(path).unwrap_or_default();
        let is_chain = path == &files.cert;
        findings.extend(judge_validity(path, &found, is_chain, now));
    }
    findings.extend(open_to_others(&files.key));
    findings
}

/// Of a chain all must be valid; of authorities one is enough.
fn judge_validity(path: &Path, found: &[Validity], is_chain: bool, now: UnixMs) -> Option<Finding> {
    let shown = path.display();
    let first_end = found.iter().map(|one| one.until).min()?;
    let is_good = |one: &Validity| one.from <= now && now < one.until;
    let is_fatal = is_chain || !found.iter().any(is_good);
    let wrong = |detail: String, fix: &str| match is_fatal {
        true => Finding::fail(CHECK, detail, fix),
        false => Finding::warn(CHECK, detail, fix),
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
        ..=SOON_MS => Finding::warn(CHECK, detail, renew),
        _ => Finding::ok(CHECK, detail),
    })
}

/// For what is not looked into.
fn unopened(path: &Path) -> Option<Finding> {
    let shown = path.display();
    let why = match fs::metadata(path) {
        // To open a pipe may wait for ever, and takes away what is in it.
        Ok(about) if !about.is_file() && !about.is_dir() => {
            format!("{shown} is no regular file, and can perhaps be read once only")
        }
        Ok(about) if about.is_file() && File::open(path).is_ok() => return None,
        _ => format!("{shown} cannot be read: see configuration"),
    };
    Some(Finding::skipped(CHECK, why))
}

/// A file that others than its owner can get at.
fn open_to_others(path: &Path) -> Option<Finding> {
    let found = exposed(path, Secrecy::Secret)?;
    Some(Finding::warn(CHECK, found.what, found.fix))
}

#[cfg(test)]
mod tests {
    use frazil_doctor::Status;

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
                assert_eq!(row.status, status, "{found:?} {is_chain} {row:?}");
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
            judge_keys(Path::new("x"), entries, NOW).iter().map(|found| found.status).collect()
        };
        assert_eq!(statuses(&[]), [Status::Warn]);
        let lasting = [entry(None), entry(Some(NOW + SOON_MS + 1))];
        assert_eq!(statuses(&lasting), [Status::Ok]);
        let ending = [entry(Some(NOW)), entry(Some(NOW + SOON_MS))];
        assert_eq!(statuses(&ending), [Status::Ok, Status::Warn, Status::Warn]);
    }
}
