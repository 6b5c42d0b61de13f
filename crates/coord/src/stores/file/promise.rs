//! What a directory promises: for all processes of a machine, and for one fixed worker.

use crate::guarantees::{Guarantees, Strength};

/// What a directory is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// The processes of one machine share its workers.
    Shared,
    /// It keeps the horizon of one worker, whose number was given by hand.
    Fixed,
}

impl Purpose {
    pub(super) fn guarantees(self, warnings: Vec<String>) -> Guarantees {
        match self {
            Self::Shared => shared(warnings),
            Self::Fixed => fixed(warnings),
        }
    }
}

fn shared(warnings: Vec<String>) -> Guarantees {
    Guarantees {
        store: "files on one machine".into(),
        uniqueness: Strength::Unconditional,
        because: "the kernel knows who is present, and a horizon is on disk before it is used"
            .into(),
        leadership: "one at a time: the kernel holds the lock until the process ends".into(),
        token: "strictly increasing".into(),
        voided_by: vec![
            "a restored backup, or a copy of the directory used beside the original".into(),
            "a clone of the whole machine, or going back to a snapshot of it".into(),
            "a network file system, or a disk that loses what it acknowledged".into(),
            "a second directory for the same Ids: two directories are two namespaces".into(),
        ],
        warnings,
    }
}

fn fixed(warnings: Vec<String>) -> Guarantees {
    Guarantees {
        store: "one fixed worker, its horizon in a file".into(),
        uniqueness: Strength::Conditional,
        because: "the horizon of the worker is on disk before it is used; that nobody elsewhere \
                  has its number is for you to see to"
            .into(),
        leadership: "one at a time on this machine: the kernel holds the lock until the process \
                     ends"
            .into(),
        token: "strictly increasing".into(),
        voided_by: vec![
            "another machine or directory with the same number".into(),
            "an old copy of the directory, used within a window of its last holder".into(),
            "a clone of the whole machine, or going back to a snapshot of it".into(),
            "a network file system, or a disk that loses what it acknowledged".into(),
        ],
        warnings,
    }
}
