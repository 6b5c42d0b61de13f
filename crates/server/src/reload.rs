//! Reading keys and certificates again while the server runs.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use frazil::coord::time::unix_ms;

use crate::app::Shared;
use crate::config::{Config, TlsFiles};
use crate::keys::{self, Keyring};
use crate::self_portrait::instant;
use crate::validity::Validity;

/// Reads keys, their quotas, and certificates again. What cannot be read changes nothing.
#[derive(Clone, Debug)]
pub struct Reloader {
    shared: Arc<Shared>,
    keys: Option<PathBuf>,
    tls: Option<TlsFiles>,
}

impl Reloader {
    pub(crate) fn new(shared: Arc<Shared>, config: &Config) -> Self {
        Self { shared, keys: config.keys.clone(), tls: config.tls.clone() }
    }

    /// Reads everything again. New connections and requests go by it at once; connections that were
    /// let in by a key that is gone are let do nothing more.
    ///
    /// # Errors
    /// Everything that is wrong; what is right is in force all the same.
    pub fn reload(&self) -> Result<Vec<String>, Vec<String>> {
        let (mut done, mut problems) = (Vec::new(), Vec::new());
        if let Some(path) = &self.keys {
            match keys::read(path) {
                Ok(entries) => {
                    let ring = Keyring::new(entries, self.shared.gate.keys().as_deref());
                    done.push(format!("{}: {} keys", path.display(), ring.len()));
                    if ring.len() == 0 {
                        let path = path.display();
                        tracing::warn!("{path} has no key: nobody is let in any more");
                    }
                    self.shared.gate.replace(ring);
                }
                Err(error) => problems.extend(error.problems),
            }
        }
        if let Some(tls) = &self.shared.tls {
            match tls.reload() {
                Ok(()) => done.push("the certificate".to_owned()),
                Err(error) => problems.push(error.to_string()),
            }
        }
        match self.shared.scopes.peers().reload() {
            Ok(true) => done.push("the key for other nodes".to_owned()),
            Ok(false) => {}
            Err(error) => problems.push(error.to_string()),
        }
        warn_of_files(self.tls.as_ref(), self.keys.as_deref());
        if problems.is_empty() { Ok(done) } else { Err(problems) }
    }
}

/// Says what others could do to the files that hold secrets, and what is over.
pub(crate) fn warn_of_files(tls: Option<&TlsFiles>, keys: Option<&Path>) {
    let secret = tls.map(|tls| tls.key.as_path()).into_iter().chain(keys);
    let over = tls.and_then(|tls| not_valid(&tls.cert));
    for warning in secret.filter_map(readable_by_others).chain(over) {
        tracing::warn!("{warning}");
    }
}

fn not_valid(cert: &Path) -> Option<String> {
    let (now, path) = (unix_ms(), cert.display());
    let found = Validity::of_file(cert)?;
    let wrong = found.iter().find(|one| !(one.from..one.until).contains(&now))?;
    let (from, until) = (instant(wrong.from), instant(wrong.until));
    Some(format!("{path} is valid from {from} until {until}, and not now: clients will refuse it"))
}

fn readable_by_others(path: &Path) -> Option<String> {
    let mode = std::fs::metadata(path).ok()?.mode();
    let path = path.display();
    (mode & 0o007 != 0).then(|| {
        format!("{path} can be read or changed by every user of this machine: chmod 600 {path}")
    })
}
