//! The lease engine and what operators' commands do, for the other crates of Frazil. Nothing in here is covered by
//! semantic versioning: it may change in any release.

pub use crate::error::write_causes;
pub use crate::lease::{Acquired, Ask, Choice, Claim, Extended, Guard, Released, Settling, Tenure};
pub use crate::namespace::etcd_prefix;
pub use crate::neighbours::{Neighbour, neighbours, warn_of_neighbours};
pub use crate::new_namespace::NewNamespace;
pub use crate::pool_view::{PoolView, WorkerView, pool_meta};
pub use crate::protocol::Leasing;
pub use crate::record::FORMAT;
pub use crate::replicas::forget_command;
pub use crate::slot_state::{SlotCounts, SlotState};
pub use crate::url::duration;
pub use crate::watching::Watching;

/// The engine that keeps a lease.
pub mod keeper {
    pub use crate::keeper::*;
}

/// The protocol of leases over a store.
pub mod protocol {
    pub use crate::protocol::*;
}

/// The quarantine of a namespace.
pub mod quarantine {
    pub use crate::quarantine::*;
}

/// The repair of lost records.
pub mod repair {
    pub use crate::repair::*;
}

/// The rules of leases: pure.
pub mod rules {
    pub use crate::rules::*;
}

/// The stores themselves; [`open`](fn@crate::open) chooses among them.
pub mod stores {
    pub use crate::stores::*;
}

/// The clocks of the machine.
pub mod time {
    pub use crate::time::*;
}

/// Exports and imports of a namespace.
pub mod transfer {
    pub use crate::transfer::*;
}

/// Times that are plainly wrong, and how they come down.
pub mod wrong_times {
    pub use crate::wrong_times::*;
}
