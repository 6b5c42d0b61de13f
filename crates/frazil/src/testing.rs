//! Faults for the tests of programs that embed a node: docs/testing.md has an example of each.
//!
//! | to see what your program does when | use |
//! |---|---|
//! | the store is silent for a while | [`TestStore::stop`], [`TestStore::resume`] |
//! | a lease is lost | [`TestStore::lose_worker`] |
//! | the clock is set back or ahead | [`TestClock`] |
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use frazil::Node;
//! use frazil::testing::{TIMING, TestClock, TestStore};
//!
//! let (store, clock) = (TestStore::new(), TestClock::new());
//! let node = Node::builder().store_handle(store.handle()).clock(clock.clone()).timing(TIMING);
//! let node = node.start().await?;
//! assert!(node.next().await? < node.next().await?);
//! node.shutdown().await;
//! # Ok(())
//! # }
//! ```

mod clock;
mod store;

use std::time::Duration;

use frazil_coord::Timing;

pub use self::clock::TestClock;
pub use self::store::TestStore;

/// About the shortest times that leases can have: a loss is noticed in a tenth of a second, and a
/// silent store is survived for three.
pub const TIMING: Timing = Timing::DEFAULT
    .with_ttl(Duration::from_secs(1))
    .with_heartbeat(Duration::from_millis(100))
    .with_outage_budget(Duration::from_secs(3));
