//! What a client does, for the metrics of whoever uses it.

use std::time::Duration;

use crate::error::Error;

/// Is told of what happens; never of a hit in the pool, which costs less than the telling.
///
/// It is called from the tasks that fetch, so it must not block.
pub trait Observer: Send + Sync + 'static {
    /// Something happened.
    fn event(&self, event: &Event<'_>);
}

impl<F: Fn(&Event<'_>) + Send + Sync + 'static> Observer for F {
    fn event(&self, event: &Event<'_>) {
        self(event);
    }
}

/// What happened.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A server answered as it was asked.
    Answered {
        /// Which one.
        endpoint: &'a str,
        /// With how many Ids.
        ids: usize,
        /// How long it took.
        latency: Duration,
    },
    /// An attempt failed; whether another one follows is the next event.
    Failed {
        /// At which endpoint.
        endpoint: &'a str,
        /// Why.
        error: &'a Error,
    },
    /// The same request is made again.
    Retried {
        /// At which endpoint now.
        endpoint: &'a str,
        /// Whether that is another one than before.
        is_failover: bool,
    },
    /// Ids were put into the pool.
    Refilled {
        /// How many.
        ids: usize,
    },
    /// Ids were dropped: too old, or wanted by nobody.
    Discarded {
        /// How many.
        ids: u64,
    },
    /// A call had to wait for the network.
    Waited {
        /// For how long.
        latency: Duration,
    },
}
