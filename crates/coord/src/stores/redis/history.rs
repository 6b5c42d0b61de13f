//! The histories of a Redis server: when a new one began, what it may lack, and what has settled.

use std::collections::VecDeque;
use std::time::Duration;

use super::answer::Answer;
use super::server::Server;
use super::settings::Settings;
use crate::record::UnixMs;
use crate::store::History;
use crate::time::millis;
use crate::url::Scheme;

/// From a look at a log that is not being synced until the server has begun to sync all that was
/// written before that look: it does so once a second, and looks at that at least once a second.
pub(super) const SYNC_BEGINS_WITHIN: Duration = Duration::from_millis(2100);
/// Between two looks that are remembered.
const SPACING: Duration = Duration::from_millis(50);
/// How many looks are remembered: more than fit between a look and the one that proves it.
const LOOKS_MAX: usize = 64;
/// By how much answers that come out of order may seem to set the clock back.
const DISORDER_MS: u64 = 100;

/// How sure it is that what a history acknowledged is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) enum Level {
    /// Nothing is.
    #[default]
    Nothing,
    /// What has settled is.
    Settled,
    /// Everything is.
    Everything,
}

impl Level {
    /// What the server can keep, as it is set up.
    pub(super) fn of(answer: &Answer, server: &Server, settings: &Settings) -> Self {
        let is_single = settings.url.scheme == Scheme::Redis;
        match is_single {
            // Who would be promoted is not known without sentinels.
            true if !answer.is_alone() => Self::Nothing,
            true if server.syncs_each_write() => Self::Everything,
            _ if server.syncs_soon() => Self::Settled,
            _ => Self::Nothing,
        }
    }

    pub(super) const fn digit(self) -> &'static str {
        match self {
            Self::Nothing => "0",
            Self::Settled => "1",
            Self::Everything => "2",
        }
    }

    fn of_digit(digit: &str) -> Self {
        match digit {
            "1" => Self::Settled,
            "2" => Self::Everything,
            _ => Self::Nothing,
        }
    }
}

/// What the namespace remembers of its last history.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(super) struct Stored {
    /// Empty if no version that knows of histories wrote anything yet.
    pub(super) id: String,
    pub(super) began: UnixMs,
    pub(super) forked: UnixMs,
    pub(super) level: Level,
    /// What versions before this one remember instead.
    pub(super) replid: String,
    pub(super) old_since: UnixMs,
    /// Whether slots of the kind are marked as used.
    pub(super) was_marked: bool,
    /// The words that it was read from: whoever begins a history must have seen the latest.
    pub(super) read: String,
}

impl Stored {
    /// Of the words in the order of the scripts.
    pub(super) fn of([id, began, forked, level, replid, old_since, marked]: [&str; 7]) -> Self {
        Self {
            id: id.to_owned(),
            began: began.parse().unwrap_or(0),
            forked: forked.parse().unwrap_or(0),
            level: Level::of_digit(level),
            replid: replid.to_owned(),
            old_since: old_since.parse().unwrap_or(0),
            was_marked: marked == "1",
            read: [id, began, forked, level].join(" "),
        }
    }

    /// Whether writes may follow: the history is known, and so is what was ever used.
    pub(super) fn is_current(&self, answer: &Answer) -> bool {
        self.id == answer.id && answer.is_marked
    }

    /// What is to be remembered before anything is written.
    pub(super) fn next(&self, answer: &Answer, level: Level, overlap_ms: u64) -> Self {
        let mut next = Self { id: answer.id.clone(), was_marked: true, ..self.clone() };
        // The records and the marks are a key each. If both are gone slots in use seem new.
        if self.was_marked && !answer.is_marked && answer.records == 0 {
            next.forked = next.forked.max(answer.clock);
        }
        if self.id == answer.id {
            return next;
        }
        let forked = answer.clock.saturating_add(overlap_ms);
        if self.id.is_empty() {
            // A version before this one wrote here, and may go on.
            let is_same = is_of(&answer.id, &self.replid);
            next.level = Level::Nothing;
            next.forked = self.old_since.max(if is_same { 0 } else { forked });
            return next;
        }
        // Versions before this one do not wait for anything to settle.
        let was_shared = is_of(&self.id, &self.replid);
        next.level = if was_shared { Level::Nothing } else { level };
        match self.level.min(next.level) {
            Level::Everything => {}
            Level::Settled if overlap_ms == 0 => next.began = next.began.max(answer.clock),
            Level::Settled | Level::Nothing => next.forked = next.forked.max(forked),
        }
        next
    }
}

/// Whether a history is one in which a server had this replication id.
fn is_of(history: &str, replid: &str) -> bool {
    !replid.is_empty() && history.split(':').nth(1) == Some(replid)
}

/// For how long another server may go on acknowledging after this one was promoted.
pub(super) fn overlap_ms(answer: &Answer, settings: &Settings) -> u64 {
    match settings.url.scheme == Scheme::Redis && answer.is_alone() {
        true => 0,
        false => millis(settings.isolation),
    }
}

/// The history that an answer shows.
pub(super) fn seen(
    answer: &Answer,
    server: &Server,
    settings: &Settings,
    mark: &Watermark,
) -> History {
    let overlap_ms = overlap_ms(answer, settings);
    let level = Level::of(answer, server, settings);
    let stored = match answer.stored.is_current(answer) {
        true => answer.stored.clone(),
        false if answer.meta.is_none() => Stored { level, ..Stored::default() },
        false => answer.stored.next(answer, level, overlap_ms),
    };
    let is_single = settings.url.scheme == Scheme::Redis;
    History {
        id: answer.id.clone(),
        since: stored.began,
        forked: stored.forked,
        settled: match stored.level {
            Level::Nothing => None,
            Level::Settled if is_single => Some(mark.settled(&answer.id)),
            Level::Settled => Some(0),
            Level::Everything => Some(answer.clock),
        },
        is_capped: is_single && stored.level == Level::Settled,
    }
}

/// Up to when the log is known to be on disk.
///
/// A look at a log that is not being synced, and one at the same log and long enough after it that
/// shows no sync either, prove that what was written before the first is on disk: its sync began in
/// between, and has ended. How long they are apart is told by our own clock, which does not jump.
#[derive(Clone, Debug, Default)]
pub(super) struct Watermark {
    history: String,
    looks: VecDeque<Idle>,
    /// The latest time of the server's clock.
    latest: UnixMs,
    settled: UnixMs,
}

/// A look at a log that was not being synced.
#[derive(Clone, Debug)]
struct Idle {
    clock: UnixMs,
    log: Log,
    /// By our boot time.
    received: Duration,
}

/// Which log it is: its size after the last rewrite, and how many rewrites have begun.
type Log = (u64, Option<u64>);

impl Watermark {
    /// Learns from an answer; both times are our boot time.
    pub(super) fn observe(&mut self, answer: &Answer, sent: Duration, received: Duration) {
        if self.history != answer.id {
            *self = Self { history: answer.id.clone(), ..Self::default() };
        }
        if answer.clock.saturating_add(DISORDER_MS) < self.latest {
            // The clock was set back, so that what is written now seems to be older than it is.
            self.looks.clear();
            self.settled = self.settled.min(answer.clock.saturating_sub(1));
            self.latest = answer.clock;
        }
        self.latest = self.latest.max(answer.clock);
        let Some(log) = healthy_log(answer) else { return self.looks.clear() };
        if self.looks.iter().any(|look| look.log != log) {
            self.looks.clear();
        }
        // One that shows a sync under way proves nothing, and what was seen before stands.
        if answer.persistence("aof_pending_bio_fsync") == Some("0") {
            self.look(Idle { clock: answer.clock, log, received }, sent);
        }
    }

    fn look(&mut self, idle: Idle, sent: Duration) {
        let is_proved = |look: &Idle| look.received + SYNC_BEGINS_WITHIN <= sent;
        while let Some(look) = self.looks.pop_front_if(|look| is_proved(look)) {
            self.settled = self.settled.max(look.clock);
        }
        if self.looks.back().is_none_or(|last| last.received + SPACING <= idle.received) {
            self.looks.push_back(idle);
        }
        if self.looks.len() > LOOKS_MAX {
            self.looks.pop_front();
        }
    }

    /// What was written in a history up to this time is on disk.
    pub(super) fn settled(&self, history: &str) -> UnixMs {
        if self.history == history { self.settled } else { 0 }
    }
}

/// The log, if it is written and neither it nor a snapshot is being rewritten.
fn healthy_log(answer: &Answer) -> Option<Log> {
    let number = |name: &str| answer.persistence(name).and_then(|value| value.parse().ok());
    let is_idle = |name: &str| number(name) == Some(0_u64);
    let is_healthy = answer.persistence("aof_enabled") == Some("1")
        && answer.persistence("aof_last_write_status") == Some("ok")
        && is_idle("aof_rewrite_in_progress")
        && is_idle("aof_rewrite_scheduled")
        && is_idle("rdb_bgsave_in_progress");
    Some((number("aof_base_size").filter(|_| is_healthy)?, number("aof_rewrites")))
}

#[cfg(test)]
mod tests;
