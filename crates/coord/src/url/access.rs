//! The login and the files for TLS that a URL names.

use std::fmt;
use std::fs;

use super::{PASSWORD_VARIABLE, Secret, StoreUrl};
use crate::error::{Error, ErrorKind};

/// The texts of the files that the options `ca`, `cert` and `key` name.
#[derive(Clone)]
pub(crate) struct PemFiles {
    /// The authorities to trust; `None`: those of the system.
    pub(crate) authorities: Option<String>,
    /// Certificate and key of the client.
    pub(crate) identity: Option<(String, String)>,
}

impl StoreUrl {
    /// User and password, for a store that wants both or none.
    ///
    /// # Errors
    /// If one is there without the other, or as for [`secret`](Self::secret).
    pub(crate) fn login(&self) -> Result<Option<(String, Secret)>, Error> {
        let scheme = self.scheme_name();
        Err(self.unusable(match (self.user.clone(), self.secret()?) {
            (Some(user), Some(password)) => return Ok(Some((user, password))),
            (None, None) => return Ok(None),
            (Some(_), None) => format!(
                "the user has no password: write {scheme}://USER:PASSWORD@host, name a file with \
                 ?password_file=, or set {PASSWORD_VARIABLE}"
            ),
            (None, Some(_)) => format!(
                "the password has no user: write {scheme}://USER@host, or unset {PASSWORD_VARIABLE}"
            ),
        }))
    }

    /// The files for TLS.
    ///
    /// # Errors
    /// If one of them cannot be read, or is no PEM of its kind.
    pub(crate) fn pem_files(&self) -> Result<PemFiles, Error> {
        let identity = self.pem("cert", "BEGIN CERTIFICATE")?;
        let identity = identity.zip(self.pem("key", "PRIVATE KEY-----")?);
        Ok(PemFiles { authorities: self.pem("ca", "BEGIN CERTIFICATE")?, identity })
    }

    fn pem(&self, option: &str, has: &str) -> Result<Option<String>, Error> {
        let Some(path) = self.option(option) else { return Ok(None) };
        let bytes = fs::read(path).map_err(|error| {
            self.unusable(format_args!("{option} {path:?} cannot be read")).with_source(error)
        })?;
        // What stands between the parts of PEM may be in any encoding.
        let text = String::from_utf8_lossy(&bytes).into_owned();
        match text.contains(has) {
            true => Ok(Some(text)),
            false => {
                Err(self.unusable(format_args!("{option} {path:?} holds no PEM of that kind")))
            }
        }
    }

    /// That the store cannot be reached as the URL says.
    pub(crate) fn unusable(&self, why: impl fmt::Display) -> Error {
        Error::new(ErrorKind::InvalidConfig, "connect", self, why)
    }
}

impl fmt::Debug for PemFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PemFiles")
    }
}
