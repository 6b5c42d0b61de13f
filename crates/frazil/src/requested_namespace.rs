//! A namespace that is created by hand, ahead of its first node.

use std::fmt;
use std::io;
use std::time::Duration;

use frazil_coord::internal::NewNamespace;
use frazil_coord::internal::rules::WINDOW_MAX_MS;
use frazil_coord::internal::time::unix_ms;
use frazil_coord::{FirstUse, Meta, Nonce, StoreUrl, Timing};
use frazil_id::Layout;

use crate::builder::{last_worker, layout_mark};
use crate::fixed::{fixed_timing, fixed_worker};

/// What a namespace is to have. What is not given is as the first node would choose it.
#[derive(Clone, Copy, Debug)]
pub struct RequestedNamespace<'a> {
    url: &'a StoreUrl,
    layout: &'a Layout,
    workers: Option<(u32, u32)>,
    window: Option<Duration>,
}

impl<'a> RequestedNamespace<'a> {
    /// One behind a store's URL, for the IDs of a layout.
    #[must_use]
    pub const fn new(url: &'a StoreUrl, layout: &'a Layout) -> Self {
        Self { url, layout, workers: None, window: None }
    }

    /// The first and the last worker of its pool; by default all that the layout has.
    #[must_use]
    pub const fn workers(mut self, workers: Option<(u32, u32)>) -> Self {
        self.workers = workers;
        self
    }

    /// How long nodes go on without their store.
    #[must_use]
    pub const fn window(mut self, window: Option<Duration>) -> Self {
        self.window = window;
        self
    }

    /// Its meta record, created now.
    ///
    /// # Errors
    /// If what was given does not go together.
    pub fn meta(&self) -> Result<Meta, InvalidNamespace> {
        let (mark, range) = (layout_mark(self.layout), self.range()?);
        let new = NewNamespace {
            layout: Some((&mark, range)),
            window_ms: millis(self.checked_window()?),
            first_use: FirstUse::AtOnce,
            was_there: false,
            owed: 0,
            now: unix_ms(),
            incarnation: Nonce::mint().map_err(InvalidNamespace::NoRandomness)?,
        };
        Ok(new.meta())
    }

    fn range(&self) -> Result<(u32, u32), InvalidNamespace> {
        let last = last_worker(self.layout);
        let fixed = fixed_worker(self.url).map(|number| (number, number));
        let range = match (fixed, self.workers) {
            (Some(fixed), Some(wanted)) if fixed != wanted => {
                return Err(InvalidNamespace::FixedWorker(fixed.0));
            }
            (fixed, wanted) => fixed.or(wanted).unwrap_or((0, last)),
        };
        match range.1 > last {
            true => Err(InvalidNamespace::WorkerTooLarge { worker: range.1, last }),
            false => Ok(range),
        }
    }

    fn checked_window(&self) -> Result<Duration, InvalidNamespace> {
        let fixed = fixed_worker(self.url).map(|_| fixed_timing(self.layout).outage_budget);
        let least = Timing::default().ttl * 3;
        match (fixed, self.window) {
            (fixed, None) => Ok(fixed.unwrap_or(Timing::default().outage_budget)),
            (Some(fixed), Some(window)) if fixed != window => {
                Err(InvalidNamespace::FixedWindow(fixed))
            }
            (None, Some(window)) if window < least => Err(InvalidNamespace::WindowTooShort(least)),
            (_, Some(window)) if millis(window) > WINDOW_MAX_MS => {
                Err(InvalidNamespace::WindowTooLong(Duration::from_millis(WINDOW_MAX_MS)))
            }
            (_, Some(window)) => Ok(window),
        }
    }
}

/// Why a namespace cannot be created so.
#[derive(Debug)]
#[non_exhaustive]
pub enum InvalidNamespace {
    /// A store of one fixed worker has no others.
    FixedWorker(u32),
    /// A worker is larger than the last one there can be.
    WorkerTooLarge {
        /// The worker.
        worker: u32,
        /// The last one.
        last: u32,
    },
    /// The window of a fixed worker follows from the layout.
    FixedWindow(Duration),
    /// The window is shorter than this.
    WindowTooShort(Duration),
    /// The window is longer than this.
    WindowTooLong(Duration),
    /// The system gave no random bits.
    NoRandomness(io::Error),
}

impl fmt::Display for InvalidNamespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FixedWorker(number) => {
                write!(f, "static:{number} has the worker {number} alone: name no other workers")
            }
            Self::WorkerTooLarge { worker, last } => {
                write!(f, "worker {worker} does not fit: there can be 0 to {last} with this layout")
            }
            Self::FixedWindow(window) => {
                let seconds = window.as_secs();
                write!(f, "the window of a fixed worker is {seconds} s with this layout: give none")
            }
            Self::WindowTooShort(least) => {
                write!(f, "a window is at least {} s: nodes must survive that", least.as_secs())
            }
            Self::WindowTooLong(most) => {
                write!(f, "a window is at most {} minutes", most.as_secs() / 60)
            }
            Self::NoRandomness(_) => f.write_str("the system gave no random bits"),
        }
    }
}

impl std::error::Error for InvalidNamespace {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::NoRandomness(error) => Some(error),
            _ => None,
        }
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> StoreUrl {
        text.parse().unwrap()
    }

    #[test]
    fn a_pool_is_as_large_as_nodes_make_it() {
        let (store, layout) =
            (url("memory:"), "time:41 worker:18 sequence:4 @1704067200000".parse().unwrap());
        let namespace = RequestedNamespace::new(&store, &layout);
        assert_eq!(namespace.meta().unwrap().last_worker, 65_535);
        let beyond = namespace.workers(Some((0, 65_536))).meta().unwrap_err();
        assert!(matches!(beyond, InvalidNamespace::WorkerTooLarge { last: 65_535, .. }));
    }

    #[test]
    fn a_fixed_worker_decides_the_pool_and_the_window() {
        let (store, layout) = (url("static:7?state=/tmp/state"), Layout::FRAZIL);
        let namespace = RequestedNamespace::new(&store, &layout);
        let meta = namespace.meta().unwrap();
        assert_eq!((meta.first_worker, meta.last_worker, meta.window_ms), (7, 7, 3000));
        let other = namespace.workers(Some((0, 7))).meta().unwrap_err();
        assert!(matches!(other, InvalidNamespace::FixedWorker(7)), "{other}");
        let other = namespace.window(Some(Duration::from_mins(5))).meta().unwrap_err();
        assert!(matches!(other, InvalidNamespace::FixedWindow(_)), "{other}");
    }

    #[test]
    fn a_window_has_its_bounds() {
        let (store, layout) = (url("memory:"), Layout::FRAZIL);
        let with = |window| RequestedNamespace::new(&store, &layout).window(Some(window)).meta();
        assert!(matches!(with(Duration::from_secs(1)), Err(InvalidNamespace::WindowTooShort(_))));
        assert!(matches!(with(Duration::from_hours(2)), Err(InvalidNamespace::WindowTooLong(_))));
        assert_eq!(with(Duration::from_mins(2)).unwrap().window_ms, 120_000);
    }
}
