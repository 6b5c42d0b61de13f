//! Reading keys and certificates again while the server runs.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::app::Shared;
use crate::config::Config;
use crate::keys::{self, Keyring};

/// Reads keys, their quotas, and certificates again. What cannot be read changes nothing.
#[derive(Clone, Debug)]
pub struct Reloader {
    shared: Arc<Shared>,
    keys: Option<PathBuf>,
}

impl Reloader {
    pub(crate) fn new(shared: Arc<Shared>, config: &Config) -> Self {
        Self { shared, keys: config.keys.clone() }
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
        if problems.is_empty() { Ok(done) } else { Err(problems) }
    }
}

/// What others could do to the files that hold secrets.
pub(crate) fn warnings(config: &Config) -> Vec<String> {
    let key = config.tls.as_ref().map(|tls| tls.key.as_path());
    let files = key.into_iter().chain(config.keys.as_deref());
    files.filter_map(readable_by_others).collect()
}

fn readable_by_others(path: &Path) -> Option<String> {
    let mode = std::fs::metadata(path).ok()?.mode();
    let path = path.display();
    (mode & 0o007 != 0).then(|| {
        format!("{path} can be read or changed by every user of this machine: chmod 600 {path}")
    })
}
