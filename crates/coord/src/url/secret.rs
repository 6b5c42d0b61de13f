//! Passwords: from the URL, a file or the environment, and never printed.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};

use super::StoreUrl;
use crate::error::{Error, ErrorKind, Reason};

/// Where the password is looked for when the URL has none.
pub const PASSWORD_VARIABLE: &str = "FRAZIL_STORE_PASSWORD";

/// A password is a line, not a disk image: what is longer is the wrong file.
const PASSWORD_BYTES_MAX: u64 = 4096;

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
    /// If the file cannot be read, is empty, or is too long to be a password.
    pub fn secret(&self) -> Result<Option<Secret>, Error> {
        if self.password.is_some() {
            return Ok(self.password.clone());
        }
        if let Some(path) = self.option("password_file") {
            let read = password_of(path).map_err(|why| {
                let why = why.after(format_args!("password_file {path:?}"));
                Error::of(ErrorKind::InvalidConfig, "read the password", self, why)
            });
            return Ok(Some(Secret(read?)));
        }
        Ok(std::env::var(PASSWORD_VARIABLE).ok().filter(|text| !text.is_empty()).map(Secret))
    }
}

/// The password in a file, or what is wrong with the file.
fn password_of(path: &str) -> Result<String, Reason> {
    let unreadable = |error: io::Error| Reason::new("cannot be read", error);
    let mut text = String::new();
    let file = File::open(path).map_err(unreadable)?;
    file.take(PASSWORD_BYTES_MAX + 1).read_to_string(&mut text).map_err(unreadable)?;
    if text.len() as u64 > PASSWORD_BYTES_MAX {
        let long = format!("has more than {PASSWORD_BYTES_MAX} bytes: write the password alone");
        return Err(long.into());
    }
    match text.trim_end_matches(['\r', '\n']) {
        "" => Err("is empty: write the password into it, as one line".into()),
        password => Ok(password.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_file_that_is_empty_or_huge_is_told_apart_from_one_with_a_password() {
        let directory = tempfile::tempdir().unwrap();
        let secret = |content: &str| {
            let path = directory.path().join("password");
            std::fs::write(&path, content).unwrap();
            let url = format!("redis://h?password_file={}", path.display());
            url.parse::<StoreUrl>().unwrap().secret()
        };
        assert_eq!(secret("hunter2\r\n"), Ok(Some(Secret::new("hunter2".into()))));
        for (content, expected) in
            [("", "is empty"), ("\n", "is empty"), (&"x".repeat(5000), "more than 4096 bytes")]
        {
            let error = secret(content).unwrap_err();
            assert!(error.to_string().contains(expected), "{error}");
            assert_eq!(error.kind(), ErrorKind::InvalidConfig);
        }
        assert!(secret("x").is_ok());
    }
}
