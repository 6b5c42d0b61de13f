//! The guarantees of a directory: for all processes of a machine, and for one fixed worker.

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
        let (store, uniqueness, because, leadership) = match self {
            Self::Shared => (
                "files on one machine",
                Strength::Unconditional,
                "the kernel knows who is present, and a horizon is on disk before it is used",
                "one at a time: the kernel holds the lock until the process ends",
            ),
            Self::Fixed => (
                "one fixed worker, its horizon in a file",
                Strength::Conditional,
                "the horizon of the worker is on disk before it is used; that nobody elsewhere has \
                 its number is for you to see to",
                "one at a time on this machine: the kernel holds the lock until the process ends",
            ),
        };
        let voids = match self {
            Self::Shared => [
                "a restored backup, or a copy of the directory used beside the original",
                "a second directory for the same IDs: two directories are two namespaces",
            ],
            Self::Fixed => [
                "another machine or directory with the same number",
                "an old copy of the directory, used within a window of its last holder",
            ],
        };
        let both = [
            "a clone of the whole machine, or going back to a snapshot of it",
            "a network file system, or a disk that loses what it acknowledged",
        ];
        Guarantees {
            store: store.into(),
            uniqueness,
            because: because.into(),
            leadership: leadership.into(),
            token: "strictly increasing".into(),
            voided_by: voids.into_iter().chain(both).map(str::to_owned).collect(),
            warnings,
        }
    }
}
