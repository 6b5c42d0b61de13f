//! The source of real time.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Tells real time. A node goes by the operating system's unless its builder is given another.
///
/// It is expected to go on by itself, and may be set: a node notices steps by the time since boot,
/// which is always the machine's.
pub trait WallClock: fmt::Debug + Send + Sync {
    /// The time since 1970-01-01T00:00:00Z.
    fn unix_time(&self) -> Duration;
}

impl<T: WallClock + ?Sized> WallClock for Arc<T> {
    fn unix_time(&self) -> Duration {
        (**self).unix_time()
    }
}
