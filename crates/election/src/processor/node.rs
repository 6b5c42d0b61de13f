//! The state that the tasks of one processor share, and its view of the others.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use frazil_coord::Token;

use super::options::Options;
use super::placement::{ClusterView, Peer, fingerprint};
use super::quota::Quota;
use super::status::StatusReporter;
use crate::{Elections, LeaderInfo, Settings, View};

/// One processor, seen by its tasks.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) app: String,
    /// What it is recognised by.
    pub(super) mark: String,
    pub(super) elections: Elections,
    pub(super) options: Options,
    pub(super) quota: Quota,
    pub(super) reporter: StatusReporter,
    jobs: BTreeSet<String>,
    draining: AtomicBool,
    parsed: Mutex<Option<Arc<ParsedView>>>,
}

/// A view, understood.
#[derive(Debug)]
pub(super) struct ParsedView {
    /// When the view was asked for and seen.
    times: (Duration, Duration),
    pub(super) cluster: ClusterView,
    /// Of the leaderships that there are, by job.
    pub(super) tokens: BTreeMap<String, Token>,
    /// How this node ranks for the jobs that nobody has.
    ranks: BTreeMap<String, usize>,
}

// The names under which nodes tell of themselves.
const MARK: &str = "node";
const QUOTA: &str = "quota";
const JOBS: &str = "jobs";

impl Node {
    pub(super) fn new(
        (app, mark): (String, String),
        elections: Elections,
        options: Options,
        jobs: BTreeSet<String>,
        reporter: StatusReporter,
    ) -> Self {
        let quota = Quota::new(mark.clone(), options.quota);
        let (draining, parsed) = (AtomicBool::new(false), Mutex::new(None));
        Self { app, mark, elections, options, quota, reporter, jobs, draining, parsed }
    }

    /// The election of a job.
    pub(super) fn job_slot(&self, job: &str) -> String {
        job_slot(&self.app, job)
    }

    /// The election of a number among the nodes.
    pub(super) fn node_slot(&self, number: u32) -> String {
        format!("{}:node:{number}", self.app)
    }

    /// The number that an election among the nodes is about.
    pub(super) fn number_of(&self, election: &str) -> Option<u32> {
        election.strip_prefix(&self.app)?.strip_prefix(":node:")?.parse().ok()
    }

    /// How it campaigns for jobs.
    pub(super) fn job_settings(&self) -> Settings {
        let mut settings = self.options.settings.clone();
        settings.metadata.insert(MARK.into(), self.mark.clone());
        settings
    }

    /// How it campaigns for a place among the nodes. Nothing is done there that a predecessor
    /// could disturb.
    pub(super) fn node_settings(&self) -> Settings {
        let mut settings = self.job_settings();
        settings.lock_delay = Duration::ZERO;
        let jobs = fingerprint(self.jobs.iter().map(String::as_str));
        settings.metadata.insert(JOBS.into(), jobs);
        if let Some(quota) = self.options.quota {
            settings.metadata.insert(QUOTA.into(), quota.to_string());
        }
        settings
    }

    /// Whether another node has a job.
    pub(super) fn sees_others_at_work(&self) -> bool {
        let cluster = &self.parsed(&self.elections.view().borrow()).cluster;
        let mut holders = cluster.jobs.values().flatten();
        holders.any(|holder| *holder != self.mark && cluster.nodes.contains_key(holder))
    }

    /// Takes no more jobs from here on.
    pub(super) fn drain(&self) {
        // Release, for those who see it to see what led to it; nothing else hangs on it.
        self.draining.store(true, Ordering::Release);
    }

    /// How long after a job became free this node goes for it; `None`: not as things are.
    pub(super) fn pace(&self, job: &str, view: &View) -> Option<Duration> {
        if self.draining.load(Ordering::Acquire) {
            return None;
        }
        let parsed = self.parsed(view);
        // A job that is not free any more is not asked about.
        let rank = parsed.ranks.get(job).copied()?;
        if !self.quota.reach(job, &parsed.cluster) {
            return None;
        }
        let rank = u32::try_from(rank).unwrap_or(u32::MAX);
        Some(self.options.rank_step.saturating_mul(rank))
    }

    /// A view, understood once for all who ask.
    pub(super) fn parsed(&self, view: &View) -> Arc<ParsedView> {
        let mut known = self.parsed.lock().unwrap_or_else(PoisonError::into_inner);
        let times = (view.asked, view.seen);
        if let Some(parsed) = known.as_ref().filter(|parsed| parsed.times == times) {
            return parsed.clone();
        }
        let parsed = Arc::new(self.understand(view));
        *known = Some(parsed.clone());
        parsed
    }

    fn understand(&self, view: &View) -> ParsedView {
        let mut cluster = ClusterView::default();
        let mut tokens = BTreeMap::new();
        cluster.jobs.extend(self.jobs.iter().map(|job| (job.clone(), None)));
        let job_prefix = self.job_slot("");
        for (election, entry) in &view.entries {
            let Some(leader) = LeaderInfo::of(entry) else { continue };
            if let Some(job) = election.strip_prefix(&job_prefix) {
                tokens.insert(job.to_owned(), leader.token);
                cluster.jobs.insert(job.to_owned(), Some(mark_of(&leader)));
            } else if self.number_of(election).is_some() {
                let quota = leader.metadata.get(QUOTA).and_then(|quota| quota.parse().ok());
                let jobs = leader.metadata.get(JOBS).cloned().unwrap_or_default();
                let mark = mark_of(&leader);
                cluster.nodes.insert(mark, Peer { instance: leader.instance, quota, jobs });
            }
        }
        let places = cluster.places();
        let ranks = places.iter().filter_map(|(job, order)| {
            let rank = order.iter().position(|mark| *mark == self.mark)?;
            Some(((*job).to_owned(), rank))
        });
        let ranks = ranks.collect();
        ParsedView { times: (view.asked, view.seen), cluster, tokens, ranks }
    }
}

pub(super) fn job_slot(app: &str, job: &str) -> String {
    format!("{app}:job:{job}")
}

/// What the processor is recognised by that leads there; nobody's mark if it is no processor.
pub(super) fn mark_of(leader: &LeaderInfo) -> String {
    leader.metadata.get(MARK).cloned().unwrap_or_default()
}
