//! The meaning of a failed request: whether something may have been written, and what kind of error
//! it is.

use frazil_zookeeper as zk;

use super::unreachable;
use crate::error::{ErrorKind, Failure, Reason};

impl Failure {
    pub(super) fn unavailable(why: impl Into<Reason>) -> Self {
        Self::Definite(ErrorKind::Unavailable, why.into())
    }

    /// The same failure of a request that writes nothing.
    pub(super) fn of_read(self) -> Self {
        match self {
            Self::Silent(why) => Self::Definite(ErrorKind::Unavailable, why),
            definite @ Self::Definite(..) => definite,
        }
    }
}

impl From<zk::Error> for Failure {
    fn from(error: zk::Error) -> Self {
        use zk::Error as E;
        let kind = match &error {
            E::NoAuth => {
                let why = "no permission: the nodes belong to another user or password";
                return Self::Definite(ErrorKind::Denied, why.into());
            }
            E::AuthFailed => ErrorKind::Denied,
            E::InvalidAcl | E::BadArguments | E::TooLarge(_) => ErrorKind::InvalidConfig,
            E::Unimplemented => {
                let why = "the server is too old: ZooKeeper 3.6 or newer is needed";
                return Self::Definite(ErrorKind::InvalidConfig, why.into());
            }
            E::Unreachable(hosts) => return unreachable::failure(hosts),
            E::Busy
            | E::QuotaExceeded
            | E::Throttled
            | E::NotReadOnly
            | E::MarshallingError
            | E::NoNode
            | E::NodeExists
            | E::BadVersion
            | E::NotEmpty
            | E::NoChildrenForEphemerals => ErrorKind::Unavailable,
            // Also of a session that expired or moved: it may have done so after the request.
            _ => return Self::Silent(Reason::of(error)),
        };
        Self::Definite(kind, Reason::of(error))
    }
}
