//! The most IDs of one request: what a server said, less when one refuses, and more again after a time.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::builder::COUNT_MAX;

/// How long a limit stands before twice as much is tried: a server may have a higher one by then, or
/// another server be asked. Where it has not, that is one refused request a minute, and only while more is wanted.
const RAISE_AFTER_NS: u64 = 60_000_000_000;

/// The most IDs of one request, as far as is known.
#[derive(Debug, Default)]
pub(crate) struct CountLimit {
    /// Nothing before a server was asked.
    count: AtomicU32,
    /// From then on one request may try more. Of boot time.
    raise_at_ns: AtomicU64,
}

impl CountLimit {
    /// It; `None` before a server was asked.
    pub(crate) fn known(&self) -> Option<u32> {
        // Relaxed, here and below: numbers that stand for themselves; one that is out of date costs a request.
        Some(self.count.load(Ordering::Relaxed)).filter(|count| *count > 0)
    }

    /// Notes what a server says of itself.
    pub(crate) fn learn(&self, max_count: u32, now_ns: u64) {
        let count = max_count.clamp(1, COUNT_MAX);
        if self.known().is_none_or(|known| count < known) {
            self.count.store(count, Ordering::Relaxed);
            self.keep_from(now_ns);
        }
    }

    /// Goes on without what no server would say.
    pub(crate) fn assume(&self) {
        let _ = self.count.compare_exchange(0, COUNT_MAX, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// The most that a request may want at that time.
    pub(crate) fn most(&self, now_ns: u64) -> u32 {
        match self.known() {
            Some(known) if now_ns >= self.raise_at_ns.load(Ordering::Relaxed) => twice(known),
            known => known.unwrap_or(1),
        }
    }

    /// How many a request asks for of those that are wanted. Of many requests at the same time one tries more
    /// than is known to be given.
    pub(crate) fn size(&self, wanted: u32, now_ns: u64) -> u32 {
        let Some(known) = self.known() else { return wanted.min(1) };
        let raise_at_ns = self.raise_at_ns.load(Ordering::Relaxed);
        if wanted <= known || now_ns < raise_at_ns {
            return wanted.min(known);
        }
        let next_ns = now_ns.saturating_add(RAISE_AFTER_NS);
        let raised = self.raise_at_ns.compare_exchange(
            raise_at_ns,
            next_ns,
            Ordering::Relaxed,
            Ordering::Relaxed,
        );
        wanted.min(if raised.is_ok() { twice(known) } else { known })
    }

    /// Notes that so many were given. If that is more than ever, the next request may try more still.
    pub(crate) fn granted(&self, count: u32) {
        if self.known().is_some_and(|known| count > known) {
            self.count.fetch_max(count, Ordering::Relaxed);
            self.raise_at_ns.store(0, Ordering::Relaxed);
        }
    }

    /// Notes that so many are too many.
    pub(crate) fn refused(&self, count: u32, now_ns: u64) {
        self.count.fetch_min((count / 2).max(1), Ordering::Relaxed);
        self.keep_from(now_ns);
    }

    fn keep_from(&self, now_ns: u64) {
        self.raise_at_ns.store(now_ns.saturating_add(RAISE_AFTER_NS), Ordering::Relaxed);
    }
}

fn twice(count: u32) -> u32 {
    count.saturating_mul(2).min(COUNT_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: u64 = RAISE_AFTER_NS;

    fn known(count: u32) -> CountLimit {
        let limit = CountLimit::default();
        limit.learn(count, 0);
        limit
    }

    #[test]
    fn a_limit_that_was_lowered_rises_again_after_a_minute() {
        let limit = known(COUNT_MAX);
        for (size, next) in [(COUNT_MAX, 50_000), (50_000, 25_000), (25_000, 12_500)] {
            assert_eq!(limit.size(u32::MAX, MINUTE - 1), size);
            limit.refused(size, 0);
            assert_eq!(limit.known(), Some(next));
        }
        assert_eq!(limit.size(u32::MAX, MINUTE - 1), 12_500);
        assert_eq!(limit.most(MINUTE - 1), 12_500);
        assert_eq!(limit.most(MINUTE), 25_000);
        // What is given goes on growing at once.
        for size in [25_000, 50_000, COUNT_MAX] {
            assert_eq!(limit.size(u32::MAX, MINUTE), size);
            limit.granted(size);
        }
        assert_eq!(limit.known(), Some(COUNT_MAX));
        assert_eq!(limit.size(u32::MAX, MINUTE), COUNT_MAX);
    }

    #[test]
    fn where_no_more_is_given_one_request_a_minute_finds_out() {
        let limit = known(1000);
        assert_eq!(limit.size(5000, MINUTE), 2000);
        assert_eq!([limit.size(5000, MINUTE), limit.size(5000, MINUTE + 1)], [1000; 2]);
        limit.refused(2000, MINUTE);
        assert_eq!(limit.known(), Some(1000));
        assert_eq!(limit.size(5000, 2 * MINUTE - 1), 1000);
        assert_eq!(limit.size(5000, 2 * MINUTE), 2000);
    }

    #[test]
    fn nothing_is_tried_for_those_who_want_no_more() {
        let limit = known(1000);
        assert_eq!(limit.size(1000, 9 * MINUTE), 1000);
        assert_eq!(limit.size(1001, 9 * MINUTE), 1001, "it is still to be tried");
    }

    #[test]
    fn the_lowest_that_a_server_says_counts() {
        let limit = CountLimit::default();
        assert_eq!((limit.known(), limit.size(10, 0)), (None, 1));
        limit.assume();
        limit.learn(64, 0);
        limit.learn(100, 0);
        limit.assume();
        assert_eq!(limit.known(), Some(64));
    }

    #[cfg(feature = "testing")]
    #[tokio::test]
    async fn a_client_asks_for_more_again_when_servers_give_more() {
        use std::sync::Arc;

        use crate::Reason;
        use crate::testing::{FakeAnswer, FakeServer};

        let most = Arc::new(AtomicU64::new(100));
        let given = most.clone();
        let server = FakeServer::start_with(move |request| {
            match request.count() > given.load(Ordering::Relaxed) {
                true => FakeAnswer::refusal(Reason::CountOutOfRange),
                false => FakeAnswer::Ids,
            }
        })
        .await
        .unwrap();
        let client = crate::Client::builder().endpoint(server.url()).prefetch(0).build().unwrap();
        let requests = async || {
            let before = server.asked();
            assert_eq!(client.batch(1000).await.unwrap().len(), 1000);
            server.asked() - before
        };
        assert!(requests().await > 10);
        most.store(100_000, Ordering::Relaxed);
        assert!(requests().await > 10, "a minute has not gone by");
        // It has.
        client.count_limit().raise_at_ns.store(0, Ordering::Relaxed);
        assert!(requests().await < 10);
        let rest = [requests().await, requests().await];
        assert!(rest[0] <= 2 && rest[1] == 1, "{rest:?}");
    }
}
