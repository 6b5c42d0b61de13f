//! Fences: they refuse the late writes of a leader that is none any more.
//!
//! A leader cannot know that it still leads at the moment its write arrives: it may have been
//! stopped in between, for any time. So the one who is written to must refuse. Every leadership has
//! a [`Token`] that is larger than all before it; what is guarded remembers the
//! highest that it has seen, and takes a write under that or a higher one, and no other.
//!
//! | to guard | see |
//! |---|---|
//! | rows of a database | [`FencedTable`] |
//! | keys of Redis | [`FencedKey`] |
//! | keys of the etcd that the election is held in | [`EtcdFence`] |
//! | a file | [`FencedFile`] |
//!
//! A fence guards only what is written through it. A new leader that is to shut out the one before
//! it must raise the fence before it reads what it goes on from: an `UPDATE` without columns,
//! [`FencedFile::raise`] and [`FencedKey::raise`] do that. On etcd the election itself is compared
//! with, and there is nothing to raise.

mod etcd;
mod file;
mod redis;
mod sql;

use frazil_coord::Token;

pub use self::etcd::{EtcdCompare, EtcdFence, EtcdTarget, NoEtcd};
pub use self::file::{FenceError, FencedFile};
pub use self::redis::{FencedKey, KeyError, RedisCall, ReplyError};
pub use self::sql::{FencedTable, Parameter, Placeholders, Statement, StatementError, bigint};

/// What became of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a refused write has not happened"]
pub enum WriteOutcome {
    /// It was carried out.
    Accepted,
    /// It was not: somebody with a higher token has written.
    Refused {
        /// The highest token that was seen.
        highest: Token,
    },
}

impl WriteOutcome {
    /// Of a write under a token to what has seen others.
    pub(crate) fn of(token: Token, highest: Token) -> Self {
        if token >= highest { Self::Accepted } else { Self::Refused { highest } }
    }

    /// Whether it was carried out.
    #[must_use]
    pub const fn is_accepted(self) -> bool {
        matches!(self, Self::Accepted)
    }
}
