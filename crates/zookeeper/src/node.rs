//! Nodes: their state, their kinds, and who may do what with them.

use std::borrow::Cow;
use std::ops::BitOr;

use crate::error::Error;
use crate::jute::{Decoder, Encoder};

/// The state of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stat {
    /// The transaction that created it.
    pub czxid: i64,
    /// The transaction that wrote it last.
    pub mzxid: i64,
    /// When it was created, by the clock of the leader, in milliseconds of Unix time.
    pub ctime: i64,
    /// When it was written last.
    pub mtime: i64,
    /// How often it was written since it was created.
    pub version: i32,
    /// How often its children changed.
    pub cversion: i32,
    /// How often its permissions changed.
    pub aversion: i32,
    /// The session that an ephemeral node belongs to; 0 of others.
    pub ephemeral_owner: i64,
    /// How many bytes it has.
    pub data_length: i32,
    /// How many children it has.
    pub num_children: i32,
    /// The transaction that changed its children last.
    pub pzxid: i64,
}

/// How long a node exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CreateMode {
    /// Until it is deleted.
    Persistent,
    /// Until the session ends, or it is deleted.
    Ephemeral,
}

/// What somebody may do with a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Acl {
    permissions: Permissions,
    scheme: Cow<'static, str>,
    id: Cow<'static, str>,
}

/// A set of permissions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Permissions(i32);

impl Stat {
    pub(crate) fn decode(answer: &mut Decoder<'_>) -> Result<Self, Error> {
        Ok(Self {
            czxid: answer.long()?,
            mzxid: answer.long()?,
            ctime: answer.long()?,
            mtime: answer.long()?,
            version: answer.int()?,
            cversion: answer.int()?,
            aversion: answer.int()?,
            ephemeral_owner: answer.long()?,
            data_length: answer.int()?,
            num_children: answer.int()?,
            pzxid: answer.long()?,
        })
    }
}

impl CreateMode {
    pub(crate) const fn flags(self) -> i32 {
        match self {
            Self::Persistent => 0,
            Self::Ephemeral => 1,
        }
    }
}

impl Acl {
    /// For an identity of a scheme of authentication.
    pub fn new(
        permissions: Permissions,
        scheme: impl Into<Cow<'static, str>>,
        id: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self { permissions, scheme: scheme.into(), id: id.into() }
    }

    /// For anybody.
    #[must_use]
    pub const fn anyone(permissions: Permissions) -> Self {
        Self { permissions, scheme: Cow::Borrowed("world"), id: Cow::Borrowed("anyone") }
    }

    /// For whoever has the login of the client that sets it.
    #[must_use]
    pub const fn creator(permissions: Permissions) -> Self {
        Self { permissions, scheme: Cow::Borrowed("auth"), id: Cow::Borrowed("") }
    }

    pub(crate) fn encode_all(acl: &[Self], request: &mut Encoder) {
        request.length(acl.len());
        for Self { permissions, scheme, id } in acl {
            request.int(permissions.0).text(scheme).text(id);
        }
    }
}

impl Permissions {
    /// To read the data, and to list the children.
    pub const READ: Self = Self(1);
    /// To write the data.
    pub const WRITE: Self = Self(2);
    /// To create children.
    pub const CREATE: Self = Self(4);
    /// To delete children.
    pub const DELETE: Self = Self(8);
    /// To change permissions.
    pub const ADMIN: Self = Self(16);
    /// All of these.
    pub const ALL: Self = Self(31);
}

impl BitOr for Permissions {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}
