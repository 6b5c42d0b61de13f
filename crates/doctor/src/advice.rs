//! Advice about an error of a store, where the store gives none.

use std::fmt;

use frazil_coord::{Error, ErrorKind};

/// An error with what to do next.
#[derive(Debug)]
pub struct Advised<'a>(pub &'a Error);

impl fmt::Display for Advised<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format!("{:#}", self.0);
        f.write_str(text.trim_end_matches('.'))?;
        match next_step_after(self.0) {
            Some(step) => write!(f, "; {step}"),
            None => Ok(()),
        }
    }
}

/// What to do next, where the error does not say.
#[must_use]
pub fn next_step_after(error: &Error) -> Option<&'static str> {
    let is_local = ["file:", "static:"].iter().any(|name| error.store().starts_with(name));
    next_step(error.kind(), is_local, &format!("{error:#}"))
}

fn next_step(kind: ErrorKind, is_local: bool, text: &str) -> Option<&'static str> {
    let says = |words: &[&str]| words.iter().any(|word| text.contains(word));
    Some(match kind {
        ErrorKind::Denied if is_local => {
            "run as the owner of the directory, or name another one with --store file:DIRECTORY"
        }
        // The store names what is missing: a right, a certificate.
        ErrorKind::Denied if says(&["the user lacks", "the user needs"]) => {
            "give the user that, or log in as another one"
        }
        ErrorKind::Denied if says(&["is ca the right one", "cert and key"]) => return None,
        ErrorKind::Denied if says(&["certificate", "alert"]) => {
            "check the options ca, cert and key of the URL"
        }
        ErrorKind::Denied => {
            "check the user and the password: in the URL, in the file that ?password_file= names, \
             or in FRAZIL_STORE_PASSWORD"
        }
        ErrorKind::Unavailable if is_local => "check that the disk is there and has room",
        ErrorKind::Unavailable if says(&["refused"]) => {
            "check that the server runs, and that this is its host and port"
        }
        ErrorKind::Unavailable if says(&["lookup", "resolve", "not known", "dns"]) => {
            "check the name of the host"
        }
        ErrorKind::Unavailable if says(&["TLS", "wants", "master", "forget-replica"]) => {
            return None;
        }
        ErrorKind::Unavailable => {
            "check that the server runs and can be reached; ?timeout= is how long it may take"
        }
        ErrorKind::Unknown => "look at frazil workers ls, and run it again",
        ErrorKind::NewerFormat => "use the version of frazil that wrote it, or a newer one",
        // These say themselves what is wrong with the URL, the record or the server.
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_mended_comes_with_a_next_step() {
        for (kind, store, why, expected) in [
            (ErrorKind::Denied, "redis://h:6379", "NOAUTH required", "?password_file="),
            (ErrorKind::Denied, "file:/x", "Permission denied", "owner of the directory"),
            (ErrorKind::Denied, "rediss://h:6379", "invalid peer certificate", "ca, cert and key"),
            (ErrorKind::Unavailable, "zk://h:2181", "Connection refused", "host and port"),
            (ErrorKind::Unavailable, "etcd://h:2379", "no answer within 5s", "?timeout="),
            (ErrorKind::NewerFormat, "file:/x", "format 2", "a newer one"),
        ] {
            let error = Error::new(kind, "connect", store, why);
            let text = Advised(&error).to_string();
            assert!(text.contains(expected), "{text}");
        }
    }
}
