//! IDs of a strict scope: one after the other, across lanes, workers and nodes.

#[cfg(feature = "scopes")]
mod elected;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use frazil_coord::UnixMs;
use frazil_id::{Id, NotReady, Within};

use crate::lane::{NodeLane, tick_of};
use crate::lanes::LaneEntry;
use crate::node::{Issued, Node, NotIssued};

/// The right to issue for a scope.
///
/// The scope's IDs have times that no other holder of the right ever uses, and so they are larger
/// than all that holders before issued. That a holder issues nothing for a request that came after
/// the next one began is what `is_valid` is for.
pub trait ScopeAuthority: fmt::Debug + Send + Sync {
    /// Whether the right is held at this moment.
    fn is_valid(&self) -> bool;

    /// Only times after this are used: those up to it belong to holders before.
    fn floor(&self) -> UnixMs;

    /// No time after this is used; it rises with every renewal.
    fn horizon(&self) -> UnixMs;
}

/// Issues the IDs of a strict scope under one right to issue.
///
/// They come from one lane for as long as that has a worker. When another lane must be used, its
/// IDs begin above the last tick of the scope.
#[derive(Debug)]
pub struct Strict<M> {
    node: Node,
    authority: M,
    past: Mutex<IssuedSoFar>,
}

/// What was issued so far.
#[derive(Debug, Default)]
struct IssuedSoFar {
    /// The lane in use.
    lane: Option<u64>,
    last: Option<Id>,
    last_tick: u64,
    is_over: bool,
}

/// Why no ID of a scope was issued.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NotScoped {
    /// The right is not held any more.
    NotHeld,
    /// The times of holders before have not passed yet.
    Floor {
        /// Until they have.
        retry_after: Duration,
    },
    /// The next tick is past what the right is good for: it must be renewed first.
    Horizon,
    /// The node has no ID to give.
    NotIssued(NotIssued),
}

impl<M: ScopeAuthority> Strict<M> {
    /// Issues by a node, under an authority.
    #[must_use]
    pub fn new(node: Node, authority: M) -> Self {
        Self { node, authority, past: Mutex::default() }
    }

    /// The same, with IDs above one that is known of the scope, whatever the authority says of times.
    #[must_use]
    pub fn above(self, last: Option<Id>) -> Self {
        if let Some(last) = last {
            let tick = last.parts(&self.node.shared.layout).map_or(0, |parts| parts.tick);
            let mut past = self.past();
            (past.last, past.last_tick) = (Some(last), tick);
        }
        self
    }

    /// The last ID of the scope that is known.
    #[must_use]
    pub fn last(&self) -> Option<Id> {
        self.past().last
    }

    /// The right to issue.
    #[must_use]
    pub const fn authority(&self) -> &M {
        &self.authority
    }

    /// Issues exactly `n` IDs of one worker over several calls: `partly` holds what was issued so
    /// far and is the caller's to keep from one call to the next, beginning with `None`.
    ///
    /// # Errors
    /// Why the rest cannot be issued now.
    pub fn try_fill(&self, partly: &mut Option<Issued>, n: u32) -> Result<Issued, NotScoped> {
        if partly.is_none() {
            match self.take(|lane, within| lane.try_batch_within(n, within)) {
                Err(NotScoped::NotIssued(NotIssued::NotReady(NotReady::BatchTooLarge {
                    ..
                }))) => {}
                done => return done,
            }
        }
        loop {
            let had = partly.as_ref().map_or(0, |some| some.batch.len());
            let missing = n.saturating_sub(u32::try_from(had).unwrap_or(u32::MAX));
            if missing == 0
                && let Some(whole) = partly.take()
            {
                return Ok(whole);
            }
            self.try_add(partly, missing)?;
        }
    }

    /// Adds as many IDs of the same worker as there are now: up to `n`, and at least one. If its tenure is
    /// over, `partly` begins anew.
    ///
    /// # Errors
    /// Why not even one.
    pub fn try_add(&self, partly: &mut Option<Issued>, n: u32) -> Result<(), NotScoped> {
        let more = self.try_up_to(n)?;
        *partly = Some(match partly.take() {
            // Of another tenure, the first part cannot be given any more.
            Some(some) if (some.worker, some.token) != (more.worker, more.token) => more,
            Some(mut some) => match some.batch.join(more.batch) {
                Ok(()) => some,
                Err(batch) => Issued { batch, ..some },
            },
            None => more,
        });
        Ok(())
    }

    /// Issues as many IDs as there are now: up to `n`, and at least one; none for 0.
    ///
    /// # Errors
    /// Why not even one.
    pub fn try_up_to(&self, n: u32) -> Result<Issued, NotScoped> {
        self.take(|lane, within| lane.try_up_to_within(n, within))
    }

    /// Ends issuing for good; gives the last time that was used, 0 if none was.
    pub fn close(&self) -> UnixMs {
        let mut past = self.past();
        past.is_over = true;
        if past.lane.is_none() { 0 } else { self.node.shared.layout.unix_ms(past.last_tick) }
    }

    /// One at a time, so that what is issued later is larger whichever lane it comes from.
    fn take(
        &self,
        ask: impl Fn(&NodeLane, Within) -> Option<Result<Issued, NotReady>>,
    ) -> Result<Issued, NotScoped> {
        // Before the lock, which a thread of the parent may have held.
        if self.node.is_copy() {
            return Err(NotScoped::NotIssued(NotIssued::Forked));
        }
        let mut past = self.past();
        // Whoever asks has received its request, so it is certain for this request that nobody
        // else had begun when it came.
        if past.is_over || !self.authority.is_valid() {
            return Err(NotScoped::NotHeld);
        }
        let layout = &self.node.shared.layout;
        let floor = tick_of(layout, self.authority.floor());
        let up_to = tick_of(layout, self.authority.horizon());
        let (seats, own, mut reason) = (self.node.shared.lanes.entries(), past.lane, None);
        let is_own = |seat: &LaneEntry| own == Some(seat.lane.number);
        let others = seats.iter().filter(|seat| !is_own(seat));
        for seat in seats.iter().filter(|seat| is_own(seat)).chain(others) {
            // Within a lane IDs increase by themselves.
            let above = if is_own(seat) { floor } else { floor.max(past.last_tick) };
            match ask(&seat.lane, Within { above, up_to }) {
                Some(Ok(issued)) => {
                    if let Some(issued) = past.note(issued, layout) {
                        return Ok(issued);
                    }
                    let above = floor.max(past.last_tick);
                    let again = ask(&seat.lane, Within { above, up_to });
                    let Some(Ok(issued)) = again else { continue };
                    if let Some(issued) = past.note(issued, layout) {
                        return Ok(issued);
                    }
                }
                Some(Err(NotReady::Horizon { horizon })) if horizon == up_to => {
                    return Err(NotScoped::Horizon);
                }
                // The lane's own lease has ended: another one may go on.
                Some(Err(why @ NotReady::Horizon { .. })) => reason = reason.or(Some(why)),
                Some(Err(NotReady::SequenceExhausted { retry_after }))
                    if self.node.now_ms() <= self.authority.floor() =>
                {
                    return Err(NotScoped::Floor { retry_after });
                }
                // The scope waits for its lane.
                Some(Err(why)) => return Err(NotScoped::NotIssued(NotIssued::NotReady(why))),
                None => {}
            }
        }
        let left = self.authority.floor().saturating_sub(self.node.now_ms());
        if reason.is_some() && left > 0 {
            // No lane reaches so far ahead of its clock.
            return Err(NotScoped::Floor { retry_after: Duration::from_millis(left) });
        }
        Err(NotScoped::NotIssued(match reason {
            Some(why) => NotIssued::NotReady(why),
            None => self.node.no_worker(),
        }))
    }

    fn past(&self) -> MutexGuard<'_, IssuedSoFar> {
        self.past.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl IssuedSoFar {
    /// Notes what is issued. `None`: it is not above what was issued before, and is given to nobody.
    fn note(&mut self, issued: Issued, layout: &frazil_id::Layout) -> Option<Issued> {
        if let Some((first, last)) = issued.batch.ends() {
            if self.last.is_some_and(|before| first <= before) {
                return None;
            }
            self.last = Some(last);
            self.last_tick = last.parts(layout).map_or(self.last_tick, |parts| parts.tick);
            self.lane = Some(issued.lane);
        }
        Some(issued)
    }
}

impl<M: ScopeAuthority + ?Sized> ScopeAuthority for Arc<M> {
    fn is_valid(&self) -> bool {
        (**self).is_valid()
    }

    fn floor(&self) -> UnixMs {
        (**self).floor()
    }

    fn horizon(&self) -> UnixMs {
        (**self).horizon()
    }
}

impl fmt::Display for NotScoped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotHeld => f.write_str("the right to issue for the scope is not held any more"),
            Self::Floor { retry_after } => {
                write!(f, "the times of holders before pass in {retry_after:?}")
            }
            Self::Horizon => f.write_str("the right to issue for the scope was not renewed"),
            Self::NotIssued(why) => why.fmt(f),
        }
    }
}

impl std::error::Error for NotScoped {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            // Its text is that of what it holds.
            Self::NotIssued(why) => why.source(),
            Self::NotHeld | Self::Floor { .. } | Self::Horizon => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use frazil_coord::internal::time::unix_ms;
    use frazil_id::Options;

    use super::*;

    #[derive(Debug)]
    struct AlwaysValid;

    impl ScopeAuthority for AlwaysValid {
        fn is_valid(&self) -> bool {
            true
        }

        fn floor(&self) -> UnixMs {
            0
        }

        fn horizon(&self) -> UnixMs {
            unix_ms() + 60_000
        }
    }

    /// Issues by one lane far ahead of the clock, drops it and issues by the other. Whether IDs
    /// still increase; `forget` takes away what the scope knows of the past.
    async fn drops_its_lane(forget: bool) -> bool {
        // A lane in a directory is not let so far ahead of its keeper. Each has a store of its own.
        let store = format!("memory:strict-{forget}");
        let options = Options::default().with_max_ahead(Duration::from_secs(5));
        let node = Node::builder().store(&store).lanes(2).options(options);
        let node = node.start().await.unwrap();
        let strict = Strict::new(node.clone(), AlwaysValid);
        let second = node.shared.lanes.entries()[1].lane.number;
        strict.past().lane = Some(second);
        let before = strict.try_fill(&mut None, 4096 * 500).unwrap();
        assert_eq!(before.lane, second);
        assert!(node.drop_lane().await);
        if forget {
            *strict.past() = IssuedSoFar::default();
        }
        let after = strict.try_up_to(1).unwrap();
        assert_ne!(after.lane, second);
        after.batch.ends().unwrap().0 > before.batch.ends().unwrap().1
    }

    #[tokio::test]
    async fn another_lane_begins_above_what_the_one_before_issued() {
        assert!(drops_its_lane(false).await);
    }

    /// The control of the one above.
    #[tokio::test]
    async fn a_lane_that_knows_nothing_of_the_one_before_goes_back() {
        assert!(!drops_its_lane(true).await);
    }
}
