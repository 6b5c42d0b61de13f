//! The reloader: reads keys and certificates again while the server runs.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use frazil::coord::internal::time::unix_ms;
use frazil_wire::words::instant;

use crate::app::Shared;
use crate::config::Config;
use crate::net::certificate::Validity;
use crate::policy::keys::follow::put_in_force;
use crate::policy::keys::{self, KeySource};

/// Reads keys, their quotas, and certificates again. What cannot be read changes nothing.
#[derive(Clone, Debug)]
pub struct Reloader {
    shared: Arc<Shared>,
    keys: Option<KeySource>,
    files: NamedFiles,
}

impl Reloader {
    pub(crate) fn new(shared: Arc<Shared>, config: &Config) -> Self {
        Self { shared, keys: config.keys.clone(), files: NamedFiles::of(config) }
    }

    /// Reads everything again. New connections and requests go by it at once; connections that were
    /// let in by a key that is gone are let do nothing more.
    ///
    /// # Errors
    /// Everything that is wrong; what is right is in force all the same.
    pub fn reload(&self) -> Result<Vec<String>, Vec<String>> {
        let (mut done, mut problems) = (Vec::new(), Vec::new());
        // Those in the store are followed all the time.
        if let Some(KeySource::File(path)) = &self.keys {
            match keys::read(path) {
                Ok(entries) => {
                    let count = put_in_force(&self.shared, entries);
                    done.push(format!("{}: {count} keys", path.display()));
                    if count == 0 {
                        let path = path.display();
                        tracing::warn!(
                            "{path} has no API key: all requests but probes are refused until it has one"
                        );
                    }
                }
                Err(error) => problems.extend(error.problems),
            }
        }
        if let Some(tls) = &self.shared.tls {
            match tls.reload() {
                Ok(()) => done.push("the certificate".to_owned()),
                Err(error) => problems.push(format!("{error:#}")),
            }
        }
        self.shared.scopes.peers().reload(&mut done, &mut problems);
        warn_of_files(&self.files);
        if problems.is_empty() { Ok(done) } else { Err(problems) }
    }
}

/// The files that a configuration names.
#[derive(Clone, Debug, Default)]
pub(crate) struct NamedFiles {
    /// What others must neither read nor change.
    secret: Vec<PathBuf>,
    /// What everybody may read: certificates and authorities.
    public: Vec<PathBuf>,
    cert: Option<PathBuf>,
}

impl NamedFiles {
    pub(crate) fn of(config: &Config) -> Self {
        let keys = config.keys.as_ref().and_then(KeySource::file).map(Path::to_owned);
        let tls = config.tls.as_ref();
        let cert = tls.map(|tls| tls.cert.clone());
        let key = tls.map(|tls| tls.key.clone());
        let client_ca = tls.and_then(|tls| tls.client_ca.clone());
        let secret = [keys, key, config.peer_key_file.clone()].into_iter().flatten().collect();
        let public = [cert.clone(), client_ca, config.peer_ca.clone()].into_iter().flatten();
        Self { secret, public: public.collect(), cert }
    }
}

/// Says what others could do to the files that matter, and what is over.
pub(crate) fn warn_of_files(files: &NamedFiles) {
    let secret = files.secret.iter().filter_map(|path| exposed(path, Secrecy::Secret));
    let public = files.public.iter().filter_map(|path| exposed(path, Secrecy::Public));
    let warnings = secret.chain(public).map(|found| format!("{}: {}", found.what, found.fix));
    let over = files.cert.as_deref().and_then(not_valid);
    for warning in warnings.chain(over) {
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

/// Whether others may read a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Secrecy {
    /// They may not.
    Secret,
    /// They may.
    Public,
}

/// A file that others can get at, and what changes that.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Exposed {
    /// What they can do.
    pub what: String,
    /// What to type.
    pub fix: String,
}

/// What others than its owner can do to a file and must not. Its group may read it, as services do that
/// run as another user than the one that owns their files.
#[must_use]
pub fn exposed(path: &Path, secrecy: Secrecy) -> Option<Exposed> {
    let mode = std::fs::metadata(path).ok()?.mode();
    let everybody = if secrecy == Secrecy::Secret { 0o007 } else { 0o002 };
    let who = match mode {
        _ if mode & everybody != 0 => "read or changed by every user of this machine",
        _ if mode & 0o020 != 0 => "changed by its group",
        _ => return None,
    };
    let path = path.display();
    let fix = match secrecy {
        Secrecy::Secret => format!("chmod 600 {path}"),
        Secrecy::Public => format!("chmod 644 {path}"),
    };
    Some(Exposed { what: format!("{path} can be {who}"), fix })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_file_that_others_could_change_or_read_a_secret_of_is_named() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let of = |mode: u32, secrecy| {
            let mode = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(file.path(), mode).unwrap();
            exposed(file.path(), secrecy).map(|found| found.what)
        };
        let is = |what: Option<String>, word: &str| what.is_some_and(|what| what.contains(word));
        for mode in [0o600, 0o640, 0o400] {
            assert_eq!(of(mode, Secrecy::Secret), None, "{mode:o}");
        }
        assert!(is(of(0o660, Secrecy::Secret), "changed by its group"));
        assert!(is(of(0o620, Secrecy::Secret), "changed by its group"));
        for mode in [0o604, 0o602, 0o644, 0o666] {
            assert!(is(of(mode, Secrecy::Secret), "every user"), "{mode:o}");
        }
        assert_eq!(of(0o644, Secrecy::Public), None);
        assert!(is(of(0o664, Secrecy::Public), "its group"));
        assert!(is(of(0o646, Secrecy::Public), "every user"));
    }
}
