//! Passwords: from the URL, a file or the environment, and never printed.

use std::fmt;
use std::fs;

use super::StoreUrl;
use crate::error::{Error, ErrorKind};

/// Where the password is looked for when the URL has none.
pub const PASSWORD_VARIABLE: &str = "FRAZIL_STORE_PASSWORD";

/// A text that no message, log or debug output shows.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a text.
    #[must_use]
    pub const fn new(text: String) -> Self {
        Self(text)
    }

    /// The text itself, for whoever logs in with it.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl StoreUrl {
    /// The password: of the URL, else of the file that `password_file` names, else of the
    /// environment variable [`PASSWORD_VARIABLE`].
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn secret(&self) -> Result<Option<Secret>, Error> {
        if self.password.is_some() {
            return Ok(self.password.clone());
        }
        if let Some(path) = self.option("password_file") {
            let text = fs::read_to_string(path).map_err(|error| {
                let why = format_args!("password_file {path:?} cannot be read: {error}");
                Error::new(ErrorKind::InvalidConfig, "read the password", self, why)
            })?;
            return Ok(Some(Secret(text.trim_end_matches(['\r', '\n']).to_owned())));
        }
        Ok(std::env::var(PASSWORD_VARIABLE).ok().filter(|text| !text.is_empty()).map(Secret))
    }
}
