//! The clock that a candidate goes by.

use std::fmt;
use std::sync::Arc;

use frazil_coord::UnixMs;
use frazil_coord::internal::time::unix_ms;

/// What tells a candidate the time. Tokens and horizons follow it, so that whoever judges its clock
/// gives the one that was judged: leaders of strict scopes use the times of the node's own IDs.
///
/// The default is the machine's real time, as it is.
#[derive(Clone, Default)]
pub struct Clock(Option<Arc<dyn Fn() -> UnixMs + Send + Sync>>);

impl Clock {
    /// A clock that tells what the function gives.
    #[must_use]
    pub fn new(now: impl Fn() -> UnixMs + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(now)))
    }

    /// Now.
    #[must_use]
    pub fn now(&self) -> UnixMs {
        self.0.as_ref().map_or_else(unix_ms, |now| now())
    }
}

/// Two are the same if one is a clone of the other, or both are the machine's.
impl PartialEq for Clock {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (None, None) => true,
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            _ => false,
        }
    }
}

impl Eq for Clock {}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "a judged clock" } else { "the machine's clock" })
    }
}
