//! The state that all handles of a client share, and how it survives a fork.

use std::fmt;
use std::sync::Arc;

use arc_swap::{ArcSwap, ArcSwapOption, Guard};
use frazil_id::{Id, Layout};
use tokio::runtime::Handle;

use crate::builder::Options;
use crate::clock::boot_ns;
use crate::count_limit::CountLimit;
use crate::error::Error;
use crate::pool::{self, PoolNumber, Taken};
use crate::secret::Keyring;
use crate::server_info::ServerInfo;
use crate::state::State;

/// What outlives a fork: settings, and what was learned of the servers. All that moves is in the
/// state, which belongs to one process.
pub(crate) struct Inner {
    pub(crate) options: Options,
    pool: PoolNumber,
    state: ArcSwap<State>,
    layout: ArcSwapOption<Layout>,
    pub(crate) limit: CountLimit,
    /// The runtime that it was made in, if it was made in one.
    home: Option<Handle>,
}

impl Inner {
    pub(crate) fn new(options: Options) -> Self {
        let pool = PoolNumber::unused();
        let state = ArcSwap::from_pointee(State::new(&options, pool));
        let layout = ArcSwapOption::from_pointee(options.layout);
        let home = Handle::try_current().ok();
        Self { options, pool, state, layout, limit: CountLimit::default(), home }
    }

    /// An ID from the pool, if there is one.
    #[inline]
    pub(crate) fn take(self: &Arc<Self>) -> Option<Id> {
        match pool::take(self.pool) {
            Some(Taken { id, is_low: false }) => Some(id),
            taken => self.take_or_refill(taken),
        }
    }

    /// The same when there is more to do: another chunk is needed, or more IDs.
    #[cold]
    #[inline(never)]
    fn take_or_refill(self: &Arc<Self>, taken: Option<Taken>) -> Option<Id> {
        let state = self.state.load();
        // Only the process whose locks they are may wait for them.
        if !state.mark.is_here() {
            return None;
        }
        let taken = match taken {
            Some(taken) => Some(taken),
            None => {
                let taken = state.pool.turn_over();
                state.note_dropped();
                taken
            }
        }?;
        if taken.is_low {
            state.refill(self);
        }
        Some(taken.id)
    }

    /// The state of this process; a new one if the process was forked.
    ///
    /// Nothing of the old one is used or even dropped: its locks may be held by threads that this
    /// process does not have, and its connections are the parent's.
    pub(crate) fn state(&self) -> Guard<Arc<State>> {
        let state = self.state.load();
        if state.mark.is_here() {
            return state;
        }
        std::mem::forget(Arc::clone(&state));
        // If another thread of the child was faster, its state is as good.
        self.state.compare_and_swap(&state, Arc::new(State::new(&self.options, self.pool)));
        self.state.load()
    }

    /// Where tasks are to run: the runtime of the caller, or else the one that the client was made
    /// in.
    pub(crate) fn runtime(&self) -> Option<Handle> {
        Handle::try_current().ok().or_else(|| self.home.clone())
    }

    pub(crate) fn layout(&self) -> Option<Layout> {
        self.layout.load().as_deref().copied()
    }

    /// What servers are shown; all are shown the same.
    pub(crate) fn key(&self) -> Option<&Arc<Keyring>> {
        self.options.targets.first().and_then(|target| target.key.as_ref())
    }

    /// Notes what a server says of itself.
    pub(crate) fn learn(&self, info: &ServerInfo) -> Result<(), Error> {
        match self.layout() {
            Some(known) if known != info.layout => {
                return Err(Error::invalid(format_args!(
                    "{} has the layout `{}`, and `{known}` is expected: ask servers of one layout",
                    info.node, info.layout
                )));
            }
            Some(_) => {}
            None => self.layout.store(Some(Arc::new(info.layout))),
        }
        self.limit.learn(info.max_count, boot_ns());
        Ok(())
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let state = self.state.load_full();
        if !state.mark.is_here() {
            // As above: a child does not touch what is its parent's.
            std::mem::forget(state);
        }
    }
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let endpoints: Vec<&str> =
            self.options.targets.iter().map(|target| &*target.endpoint.text).collect();
        f.debug_struct("Client")
            .field("endpoints", &endpoints)
            .field("layout", &self.layout())
            .finish_non_exhaustive()
    }
}
