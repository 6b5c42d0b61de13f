//! The histories of a Redis server: when a new one began, what it may lack, and what has settled.

use super::answer::Answer;
use super::server::Server;
use super::settings::Settings;
use crate::record::UnixMs;
use crate::store::History;
use crate::time::millis;
use crate::url::Scheme;

/// After a write this passes before its log is looked at: a second until it is synced, and one more
/// by which the server may put that off while the disk is busy.
const SYNCED_AFTER_MS: u64 = 2100;

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
        next.level = level;
        let is_whole = self.level == Level::Everything && level == Level::Everything;
        let is_cut = self.level >= Level::Settled && level >= Level::Settled && overlap_ms == 0;
        if self.id.is_empty() {
            // A version before this one wrote here, and may go on: it does not wait for anything
            // to settle.
            next.level = Level::Nothing;
            let is_same = !self.replid.is_empty() && answer.id.contains(&self.replid);
            let forked = if is_same { 0 } else { answer.clock.saturating_add(overlap_ms) };
            next.forked = forked.max(self.old_since);
        } else if is_cut && !is_whole {
            next.began = next.began.max(answer.clock);
        } else if !is_whole {
            next.forked = next.forked.max(answer.clock.saturating_add(overlap_ms));
        }
        next
    }
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
        overlap_ms,
    }
}

/// Up to when the log is known to be on disk.
///
/// A look at a healthy log, and a later one that shows no sync under way and the same log, prove that
/// what was written long enough before the first is on disk.
#[derive(Clone, Debug, Default)]
pub(super) struct Watermark {
    history: String,
    first: Option<Health>,
    settled: UnixMs,
}

/// What an answer says about the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Health {
    clock: UnixMs,
    base_size: u64,
}

impl Watermark {
    pub(super) fn observe(&mut self, answer: &Answer) {
        if self.history != answer.id {
            *self = Self { history: answer.id.clone(), ..Self::default() };
        }
        let number = |name: &str| answer.persistence(name).and_then(|value| value.parse().ok());
        let is_idle = |name: &str| number(name) == Some(0_u64);
        let is_healthy = answer.persistence("aof_enabled") == Some("1")
            && answer.persistence("aof_last_write_status") == Some("ok")
            && is_idle("aof_rewrite_in_progress")
            && is_idle("rdb_bgsave_in_progress");
        let Some(base_size) = number("aof_base_size").filter(|_| is_healthy) else {
            self.first = None;
            return;
        };
        let now = Health { clock: answer.clock, base_size };
        match self.first {
            Some(first) if first.base_size == base_size => {
                if is_idle("aof_pending_bio_fsync") {
                    let proved = first.clock.saturating_sub(SYNCED_AFTER_MS);
                    self.settled = self.settled.max(proved);
                    self.first = Some(now);
                }
            }
            _ => self.first = Some(now),
        }
    }

    /// What was written in a history up to this time is on disk.
    pub(super) fn settled(&self, history: &str) -> UnixMs {
        if self.history == history { self.settled } else { 0 }
    }

    /// How long from a time on the next look can prove that what was written by then is on disk.
    pub(super) const fn ready_in_ms(now: UnixMs, written: UnixMs) -> u64 {
        (written + SYNCED_AFTER_MS).saturating_sub(now)
    }
}
