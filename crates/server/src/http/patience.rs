//! How long a connection may be without a whole request.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use frazil::coord::time::boot_time;

/// What a connection is doing: one word, written twice a request, so that no timer is set for each.
#[derive(Debug)]
pub(super) struct Pulse {
    /// Milliseconds of boot time since which nothing was asked; 0 while a request is answered.
    idle_since_ms: AtomicU64,
}

impl Pulse {
    pub(super) fn new() -> Self {
        Self { idle_since_ms: AtomicU64::new(now_ms()) }
    }

    /// A request's head has arrived.
    pub(super) fn busy(&self) {
        // Relaxed, here and below: one word that stands for itself.
        self.idle_since_ms.store(0, Ordering::Relaxed);
    }

    /// It was answered at this moment of boot time.
    pub(super) fn idle(&self, now: Duration) {
        self.idle_since_ms.store(to_ms(now), Ordering::Relaxed);
    }

    /// Ends when no request has come for so long since the client connected or was answered.
    pub(super) async fn lost(&self, limit: Duration) {
        loop {
            let since = self.idle_since_ms.load(Ordering::Relaxed);
            let since = if since == 0 { now_ms() } else { since };
            let left = (since + to_ms(limit)).saturating_sub(now_ms());
            if left == 0 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(left)).await;
        }
    }
}

fn now_ms() -> u64 {
    to_ms(boot_time())
}

fn to_ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX).max(1)
}
