//! The servers that are asked: those that were given, always, and those that were discovered.

use std::sync::Arc;

use arc_swap::{ArcSwap, Guard};

use crate::health::Readiness;
use crate::host::{Host, Target};

/// All servers of a process.
#[derive(Debug)]
pub(crate) struct Hosts {
    given: Vec<Arc<Host>>,
    /// Those and the discovered ones.
    all: ArcSwap<Vec<Arc<Host>>>,
}

/// Those who may be asked now.
#[derive(Debug)]
pub(crate) struct Choice {
    pub(crate) well: Vec<Arc<Host>>,
    pub(crate) to_be_probed: Option<Arc<Host>>,
    /// When the first of the others has rested.
    pub(crate) earliest_ns: u64,
}

impl Hosts {
    pub(crate) fn new(given: impl IntoIterator<Item = Target>) -> Self {
        let given: Vec<_> = given.into_iter().map(Host::new).map(Arc::new).collect();
        Self { all: ArcSwap::from_pointee(given.clone()), given }
    }

    pub(crate) fn given(&self) -> &[Arc<Host>] {
        &self.given
    }

    pub(crate) fn all(&self) -> Guard<Arc<Vec<Arc<Host>>>> {
        self.all.load()
    }

    pub(crate) fn discovered(&self) -> Vec<Arc<Host>> {
        self.all().iter().skip(self.given.len()).cloned().collect()
    }

    /// Puts these in the place of all that were discovered before.
    pub(crate) fn replace_discovered(&self, discovered: Vec<Arc<Host>>) {
        let all = self.given.iter().cloned().chain(discovered).collect();
        self.all.store(Arc::new(all));
    }

    /// Sorts those that can answer a kind of request by their health.
    pub(crate) fn choice(&self, now_ns: u64, suits: impl Fn(&Host) -> bool) -> Choice {
        let all = self.all();
        let mut choice = Choice {
            well: Vec::with_capacity(all.len()),
            to_be_probed: None,
            earliest_ns: u64::MAX,
        };
        for host in all.iter().filter(|host| suits(host)) {
            match host.health.readiness(now_ns) {
                Readiness::Ready => choice.well.push(host.clone()),
                Readiness::ProbeDue => choice.to_be_probed = Some(host.clone()),
                Readiness::BackingOff(until) => choice.earliest_ns = choice.earliest_ns.min(until),
            }
        }
        choice
    }
}

impl Choice {
    /// Leaves out the one that was just asked if there are others, and then those far away if some
    /// are near.
    pub(crate) fn narrow(&mut self, avoid: Option<&Arc<Host>>) {
        if self.well.len() > 1
            && let Some(avoid) = avoid
        {
            self.well.retain(|host| !Arc::ptr_eq(host, avoid));
        }
        if self.well.iter().any(|host| host.is_near()) {
            self.well.retain(|host| host.is_near());
        }
    }

    /// Of two that are well, by chance, the one with less to do.
    pub(crate) fn draw(&self) -> Option<Arc<Host>> {
        let draw = || self.well.get(fastrand::usize(..self.well.len().max(1)));
        let (one, other) = (draw()?, draw()?);
        Some(if one.busy() > other.busy() { other.clone() } else { one.clone() })
    }
}
