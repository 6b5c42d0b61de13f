//! Unique, time-ordered 64-bit IDs with worker numbers that nobody assigns by hand.
//!
//! A [`Node`] leases workers from a store and issues their IDs; it stays correct when clocks jump,
//! processes freeze, networks split and stores fail.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = tempfile::tempdir()?;
//! # let store = format!("file:{}", directory.path().display());
//! let node = frazil::Node::builder().store(&store).start().await?;
//! let (a, b) = (node.next().await?, node.next().await?);
//! assert!(a < b);
//! node.shutdown().await;
//! # Ok(())
//! # }
//! ```
//!
//! | to | see |
//! |---|---|
//! | issue IDs in async code | [`Node`], [`Builder`] |
//! | issue IDs in blocking code | [`blocking::Node`] |
//! | issue IDs that increase across nodes | [`Strict`] |
//! | elect a leader in the namespace of a node | `Node::elections`, with the feature `scopes` |
//! | move to other workers while IDs are issued | [`Node::rotate`] |
//! | know how a node is doing | [`Node::info`], [`Node::watch`] |
//! | take IDs apart, describe layouts | [`id`] |
//! | test what a lost lease, a silent store or a clock that is set does to a program | `frazil::testing`, with the feature `testing` |
//! | look into stores, write one | [`coord`] |
//!
//! The file store is always there; the features `redis`, `etcd` and `zookeeper` add those. The
//! feature `scopes` adds elections (`frazil::election`), and a leader's proof as a [`ScopeAuthority`];
//! `testing` adds a store and a clock that tests hurt.

// Loom and shuttle replace the atomics, and what needs a runtime cannot be built with them: only
// the slot is.
#[cfg(not(any(loom, shuttle)))]
pub mod blocking;
#[cfg(not(any(loom, shuttle)))]
mod builder;
#[cfg(not(any(loom, shuttle)))]
mod clock;
#[cfg(all(feature = "scopes", not(any(loom, shuttle))))]
mod elections;
#[cfg(not(any(loom, shuttle)))]
mod fixed;
#[cfg_attr(
    any(loom, all(shuttle, not(test))),
    expect(dead_code, reason = "only its tests are built")
)]
mod generator_slot;
#[cfg(not(any(loom, shuttle)))]
mod info;
#[cfg(not(any(loom, shuttle)))]
mod lane;
#[cfg(not(any(loom, shuttle)))]
mod lane_lease;
#[cfg(not(any(loom, shuttle)))]
mod lanes;
#[cfg(not(any(loom, shuttle)))]
mod losses;
#[cfg(not(any(loom, shuttle)))]
mod node;
#[cfg(not(any(loom, shuttle)))]
mod requested_namespace;
#[cfg(not(any(loom, shuttle)))]
mod rotation;
#[cfg(not(any(loom, shuttle)))]
mod start_error;
#[cfg(not(any(loom, shuttle)))]
mod state_directory;
#[cfg(not(any(loom, shuttle)))]
mod store_choice;
#[cfg(not(any(loom, shuttle)))]
mod strict;
#[cfg(all(feature = "testing", not(any(loom, shuttle))))]
pub mod testing;
#[cfg(not(any(loom, shuttle)))]
mod waits;
#[cfg(not(any(loom, shuttle)))]
mod wall_clock;

#[cfg(not(any(loom, shuttle)))]
pub use frazil_coord as coord;
#[cfg(not(any(loom, shuttle)))]
pub use frazil_coord::{FirstUse, Namespace, Store, StoreUrl, Timing};
#[cfg(not(any(loom, shuttle)))]
pub use frazil_coord::{LeaseState, LeaseStatus};
#[cfg(all(feature = "scopes", not(any(loom, shuttle))))]
pub use frazil_election as election;
pub use frazil_id as id;
pub use frazil_id::{Batch, Format, Id, Layout, NotReady};

#[cfg(not(any(loom, shuttle)))]
pub use self::{
    builder::{Builder, layout_mark},
    clock::{DisciplinedClock, Steps},
    fixed::{fixed_timing, fixed_worker},
    info::{LaneInfo, NodeInfo},
    node::{Issued, Node, NotIssued},
    requested_namespace::{InvalidNamespace, RequestedNamespace},
    rotation::{Moved, NotRotated},
    start_error::StartError,
    state_directory::{state_directory, store_or_default},
    strict::{NotScoped, ScopeAuthority, Strict},
    wall_clock::WallClock,
};

/// Runs what the README shows.
#[cfg(all(doctest, not(any(loom, shuttle))))]
#[doc = include_str!("../README.md")]
struct Readme;

/// Runs what the page on tests shows.
#[cfg(all(doctest, feature = "testing", not(any(loom, shuttle))))]
#[doc = include_str!("../../../docs/testing.md")]
struct TestingPage;
