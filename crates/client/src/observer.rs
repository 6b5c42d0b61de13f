//! The events of a client, for the metrics of whoever uses it.

use std::sync::Arc;
use std::time::Duration;

use crate::error::Error;

/// Is told of what happens; never of a hit in the pool, which costs less than the telling.
///
/// Everything that [`Stats`](crate::Stats) counts but hits and requests is told here, one for one. It
/// is called by the tasks that fetch, and by calls that find their pool used up or too old, so it must
/// not block.
pub trait Observer: Send + Sync + 'static {
    /// Something happened.
    fn event(&self, event: &Event<'_>);
}

impl<F: Fn(&Event<'_>) + Send + Sync + 'static> Observer for F {
    fn event(&self, event: &Event<'_>) {
        self(event);
    }
}

/// Whoever builds the client may keep it, too.
impl<T: Observer + ?Sized> Observer for Arc<T> {
    fn event(&self, event: &Event<'_>) {
        self.as_ref().event(event);
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
        /// With how many IDs.
        ids: usize,
        /// How long it took.
        latency: Duration,
    },
    /// An attempt failed, or a look at whether a server is well again; whether another attempt
    /// follows is the next event.
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
    /// IDs were put into the pool.
    Refilled {
        /// How many.
        ids: usize,
    },
    /// IDs were dropped: too old, or wanted by nobody.
    Discarded {
        /// How many.
        ids: u64,
    },
    /// A call had to wait for the network, and then got an ID or an error.
    Waited {
        /// For how long.
        latency: Duration,
    },
    /// A server was discovered and has answered: it is asked from now on.
    Joined {
        /// Where it is.
        endpoint: &'a str,
    },
    /// A server that was discovered is no longer there: it is not asked any more.
    Left {
        /// Where it was.
        endpoint: &'a str,
    },
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    #[derive(Default)]
    struct Discarded(AtomicU64);

    impl Observer for Discarded {
        fn event(&self, event: &Event<'_>) {
            if let Event::Discarded { ids } = event {
                self.0.fetch_add(*ids, Ordering::Relaxed);
            }
        }
    }

    fn tell(observer: impl Observer) {
        observer.event(&Event::Discarded { ids: 7 });
    }

    #[test]
    fn an_observer_that_is_shared_is_one() {
        let discarded = Arc::new(Discarded::default());
        tell(discarded.clone());
        let any: Arc<dyn Observer> = discarded.clone();
        tell(any);
        assert_eq!(discarded.0.load(Ordering::Relaxed), 14);
    }
}
