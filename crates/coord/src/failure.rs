//! The reason why an act has no result, where it is not known yet which act it is and on which store.

use std::fmt;

use crate::error::{Error, ErrorKind};

/// Why an act has no result.
#[derive(Clone, Debug)]
pub(crate) enum Failure {
    /// Nothing was written.
    Definite(ErrorKind, String),
    /// It may have been carried out, or still may be.
    Silent(String),
}

impl Failure {
    /// The error of an act on a store (its redacted text).
    pub(crate) fn into_error(self, act: &'static str, store: impl fmt::Display) -> Error {
        match self {
            Self::Definite(kind, why) => Error::new(kind, act, store, why),
            Self::Silent(why) => Error::new(ErrorKind::Unknown, act, store, why),
        }
    }
}

impl From<(ErrorKind, String)> for Failure {
    fn from((kind, why): (ErrorKind, String)) -> Self {
        Self::Definite(kind, why)
    }
}
