//! The one task that fetches for a client, for as long as there is something to fetch.

use std::sync::Arc;

use tokio::time::Instant;

use crate::call;
use crate::clock;
use crate::inner::Inner;
use crate::state::State;
use crate::waiters::PoolLevel;

/// Starts it. Its caller has marked that somebody is fetching.
pub(crate) fn start(inner: &Arc<Inner>, state: &Arc<State>) {
    // Made before the task is, so that a runtime that never runs it is noticed.
    let permit = FetchPermit { state: state.clone(), is_done: false };
    if let Some(runtime) = inner.runtime() {
        runtime.spawn(fetch(inner.clone(), permit));
    }
}

/// The permit to fetch. If it is dropped before it is done, others may take it up.
struct FetchPermit {
    state: Arc<State>,
    is_done: bool,
}

impl Drop for FetchPermit {
    fn drop(&mut self) {
        // In a child the queue is the parent's copy, and nobody looks at it again.
        if !self.is_done && self.state.mark.is_here() {
            self.state.waiters().abandon();
        }
    }
}

async fn fetch(inner: Arc<Inner>, mut permit: FetchPermit) {
    let state = permit.state.clone();
    let mut is_first = true;
    loop {
        let deadline = Instant::now() + inner.options.deadline;
        // What this fails with, the request will, too.
        let _ = call::ensure_known(&inner, &state, deadline).await;
        let stock =
            PoolLevel { handed_out: state.pool.handed_out(), has_spare: state.pool.has_spare() };
        let now_ns = clock::boot_ns();
        let order = state.waiters().order(inner.limit.most(now_ns), now_ns, stock, is_first);
        let Some(order) = order else {
            permit.is_done = true;
            return;
        };
        is_first = false;
        let asked_ns = clock::boot_ns();
        let fetched = call::exactly(&inner, &state, order.count as usize, deadline).await;
        // What was asked for by the parent is the parent's.
        if !state.mark.is_here() {
            return;
        }
        match fetched {
            Ok(ids) => state.settle(ids, asked_ns),
            Err(error) => state.waiters().fail(order.waiting, &error),
        }
    }
}
