//! The settings of a keeper, given once at its start.

use std::collections::BTreeMap;
use std::time::Duration;

use super::status::Refusal;
use crate::new_namespace::FirstUse;
use crate::record::Meta;
use crate::slot::Slot;
use crate::timing::Timing;

/// What a keeper is to keep.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The durations.
    pub timing: Timing,
    /// What times and numbers mean; all holders of a namespace must agree.
    pub layout: String,
    /// The workers to lease from; `None` for those that the namespace gives out.
    pub workers: Option<(u32, u32)>,
    /// The last worker that there can be.
    pub last_worker: u32,
    /// When a namespace that does not exist yet is used.
    pub first_use: FirstUse,
    /// Who holds, for people to read.
    pub holder: String,
    /// More about who holds.
    pub info: BTreeMap<String, String>,
    /// The worker to try first.
    pub favourite: Option<u32>,
}

impl Setup {
    /// Why a namespace cannot be used with this, if so.
    #[must_use]
    pub fn disagreement(&self, meta: &Meta) -> Option<Refusal> {
        if meta.layout != self.layout {
            let (here, there) = (self.layout.clone(), meta.layout.clone());
            return Some(Refusal::OtherLayout { here, there });
        }
        let there = (meta.first_worker, meta.last_worker);
        let here = self.workers.unwrap_or(there);
        let fits = there.0 <= there.1 && there.1 <= self.last_worker;
        (here != there || !fits).then_some(Refusal::OtherWorkers { here, there })
    }
}

/// What somebody who wants to lead is to hold.
#[derive(Clone, Debug)]
pub struct Candidacy {
    /// The slot that whoever holds it leads by.
    pub slot: Slot,
    /// Who leads, for people to read.
    pub holder: String,
    /// How long the leader is leader without renewing.
    pub ttl: Duration,
    /// Between two renewals.
    pub heartbeat: Duration,
    /// Between two looks at a slot that the store tells no news of.
    pub retry: Duration,
    /// How much longer to wait after a leader that was lost without resigning.
    pub lock_delay: Duration,
    /// For how long a renewal is good from when it was asked for; `None` where no time ends presence.
    pub trust: Option<Duration>,
    /// For strict scopes: how far ahead of now times may be used, by a clock that was judged.
    pub window: Option<Duration>,
    /// When a namespace that does not exist yet is used.
    pub first_use: FirstUse,
}
