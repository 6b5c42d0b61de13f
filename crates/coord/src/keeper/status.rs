//! The status of a lease, for people and probes.

use std::fmt;
use std::time::Duration;

use crate::error::{Error, ErrorKind};
use crate::keeper::Grant;
use crate::lease::{Census, Loss};
use crate::namespace::Namespace;
use crate::nonce::NoRandomBits;
use crate::record::UnixMs;
use crate::time::Utc;

/// How a lease is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeaseStatus {
    /// In a word with its reason.
    pub state: LeaseState,
    /// What may be used, as last acknowledged. It stays valid up to its horizon whatever happens.
    pub grant: Option<Grant>,
    /// The last failure of the store, until it answers again.
    pub trouble: Option<Error>,
    /// The pool of workers, as it was last looked at.
    pub pool: Option<Pool>,
    /// Tenures lost so far.
    pub losses: u64,
    /// Renewals acknowledged so far.
    pub renewals: u64,
}

/// The states of a lease. All of them: whoever waits for a worker decides about each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeaseState {
    /// No worker yet.
    Seeking(Waiting),
    /// A worker is held and renewed.
    Held,
    /// A worker is held; the store does not answer. The grant lasts until its horizon.
    Unrenewed,
    /// A worker is held, but this machine's clock differs too much from another. The grant lasts
    /// until its horizon, and is not raised.
    Distrusted(ClockSkew),
    /// The worker was lost and another is sought. The old grant lasts until its horizon.
    Replacing(Loss, Waiting),
    /// It cannot go on without an operator.
    Refused(Refusal),
    /// Over.
    Released,
}

/// What a lease waits for. All of it: whether waiting helps is decided for each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// For the answer of the store.
    Answer,
    /// For the store to be reachable.
    Store(ErrorKind),
    /// For a worker to become free.
    Pool(Census),
    /// For the quarantine to pass.
    Quarantine {
        /// Until when.
        until: UnixMs,
    },
    /// For the quarantine to pass, which no clock that was right can have set: an operator must bring
    /// it down, by [`repair_command`].
    WrongTimes {
        /// Until when.
        until: UnixMs,
        /// How far that is ahead, in whole hours.
        ahead_hours: u64,
    },
    /// For a clock that agrees with another.
    Clock(ClockSkew),
    /// For a worker that was taken over: the store may still lose that, for this reason.
    Settling(Error),
}

/// What an operator types to bring down times that are plainly wrong.
#[must_use]
pub fn repair_command(store: &dyn fmt::Display, namespace: Option<&Namespace>) -> String {
    let store = store.to_string();
    let named = namespace.map_or_else(String::new, |name| format!(" --namespace {name}"));
    // A password is not shown.
    let hidden = if store.contains("***") { " (with the password in place of ***)" } else { "" };
    format!("frazil store repair --wrong-times --store '{store}'{named}{hidden}")
}

/// What an operator can do about a pool of which nothing is left but poisoned workers.
pub(super) const POISONED_ADVICE: &str = "a clock was wrong when they were used; see frazil workers ls, and \
     frazil workers repair W --last-issued ID";

impl Census {
    /// Whether no worker will become free by itself, because a clock was wrong.
    pub(super) const fn is_poisoned_out(&self) -> bool {
        self.held == 0 && self.blocked == 0 && self.poisoned > 0
    }
}

/// How far this machine's clock is from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClockSkew {
    /// How far it is ahead, in milliseconds; negative if it is behind. With peers: at least.
    pub ahead_ms: i64,
    /// The other clock.
    pub judge: Judge,
}

impl ClockSkew {
    /// How far a clock is from the store's.
    pub(super) const fn to_store(now: UnixMs, store_now: UnixMs) -> Self {
        let ahead_ms = now.saturating_sub(store_now).cast_signed()
            - store_now.saturating_sub(now).cast_signed();
        Self { ahead_ms, judge: Judge::Store }
    }
}

/// Whose clock another one is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Judge {
    /// The store's own.
    Store,
    /// The median of other live holders.
    Peers,
}

/// A pool of workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pool {
    /// How many workers there are.
    pub size: u32,
    /// How many of them cannot be taken now, and why.
    pub census: Census,
}

/// Why a lease cannot go on.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// The store says so.
    Store(Error),
    /// The namespace's times and numbers mean something else.
    OtherLayout {
        /// What they mean here.
        here: String,
        /// What they mean in the namespace.
        there: String,
    },
    /// The namespace gives out other workers.
    OtherWorkers {
        /// The range asked for.
        here: (u32, u32),
        /// The range of the namespace.
        there: (u32, u32),
    },
    /// The operating system gives no random bits.
    NoRandomBits(NoRandomBits),
}

impl LeaseStatus {
    /// Of a lease that has not begun.
    #[must_use]
    pub const fn at_first() -> Self {
        Self {
            state: LeaseState::Seeking(Waiting::Answer),
            grant: None,
            trouble: None,
            pool: None,
            losses: 0,
            renewals: 0,
        }
    }

    /// How long the grant lasts without the store, from now by the lane's clock.
    #[must_use]
    pub fn left(&self, now: UnixMs) -> Duration {
        // What was released is not used any more, however long it might have lasted.
        let grant = self.grant.filter(|_| self.state != LeaseState::Released);
        let horizon = grant.map_or(0, |grant| grant.horizon);
        Duration::from_millis(horizon.saturating_sub(now))
    }
}

impl Pool {
    /// Whether more than half of it cannot be taken: the other half is what is left when all
    /// holders are replaced at once. A pool of one is always in use.
    #[must_use]
    pub fn is_crowded(&self) -> bool {
        let Census { held, blocked, poisoned, .. } = self.census;
        let used = u64::from(held) + u64::from(blocked) + u64::from(poisoned);
        self.size > 1 && used * 2 > u64::from(self.size)
    }
}

impl LeaseState {
    /// The state in a word.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Seeking(_) => "seeking",
            Self::Held => "held",
            Self::Unrenewed => "unrenewed",
            Self::Distrusted(_) => "distrusted",
            Self::Replacing(..) => "replacing",
            Self::Refused(_) => "refused",
            Self::Released => "released",
        }
    }
}

impl fmt::Display for LeaseState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Seeking(waiting) => write!(f, "no worker yet, waiting for {waiting}"),
            Self::Held => f.write_str("a worker is held"),
            Self::Distrusted(skew) => write!(
                f,
                "a worker is held, but not renewed: waiting for {}",
                Waiting::Clock(*skew)
            ),
            Self::Unrenewed => f.write_str("a worker is held, but the store does not answer"),
            Self::Replacing(loss, waiting) => {
                write!(f, "the worker was lost ({loss}), waiting for {waiting}")
            }
            Self::Refused(refusal) => write!(f, "{refusal:#}"),
            Self::Released => f.write_str("released"),
        }
    }
}

impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Answer => f.write_str("the store's answer"),
            Self::Store(kind) => write!(f, "the store ({})", kind.word()),
            Self::Pool(census) => census.fmt(f),
            Self::Quarantine { until } => {
                write!(f, "the end of the quarantine at {}", Utc(*until))
            }
            Self::WrongTimes { until, ahead_hours } => {
                let (days, hours) = (ahead_hours / 24, ahead_hours % 24);
                write!(
                    f,
                    "the end of a quarantine that is plainly wrong: it ends at {}, {days} days and {hours} hours ahead of this machine's clock. A clock \
                     was wrong when it was written, or this one is. If this one is right, \
                     frazil store repair --wrong-times brings it down",
                    Utc(*until)
                )
            }
            Self::Clock(skew) => write!(f, "this machine's clock, {skew}"),
            Self::Settling(error) => {
                write!(f, "a worker that was taken over to be safe: {error:#}")
            }
        }
    }
}

impl fmt::Display for ClockSkew {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let side = if self.ahead_ms < 0 { "behind" } else { "ahead of" };
        let whose = match self.judge {
            Judge::Store => "the store's",
            Judge::Peers => "those of most others",
        };
        write!(f, "{} ms {side} {whose}", self.ahead_ms.unsigned_abs())
    }
}

impl fmt::Display for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Census { held, blocked, poisoned, .. } = self.census;
        write!(
            f,
            "of {} workers {held} are held, {blocked} not to be used again yet, {poisoned} poisoned",
            self.size
        )
    }
}

impl fmt::Display for Census {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { held, blocked, poisoned, .. } = self;
        write!(
            f,
            "a free worker: {held} held, {blocked} not to be used again yet, {poisoned} poisoned"
        )?;
        if self.is_poisoned_out() { write!(f, ": {POISONED_ADVICE}") } else { Ok(()) }
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Superseded { token, holder } => {
                write!(f, "taken over by {holder:?} with token {token}")
            }
            Self::Overlapped { token, holder } => {
                write!(f, "the store had forgotten it and gave it to {holder:?} with token {token}")
            }
            Self::Released => f.write_str("released by an operator"),
            Self::Vanished => f.write_str("the store has forgotten it"),
            Self::Lapsed => f.write_str("it lapsed, and the store may have lost writes since"),
            Self::Regressed => f.write_str("the store went back in its history"),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Store(error) => error.fmt(f),
            Self::OtherLayout { here, there } => write!(
                f,
                "the namespace has another layout: {there}; here it is {here}. Use that layout"
            ),
            Self::OtherWorkers { here, there } => write!(
                f,
                "the namespace leases workers {} to {}, not {} to {}: use that range",
                there.0, there.1, here.0, here.1
            ),
            Self::NoRandomBits(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Refusal {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            // Their text is that of what they hold, so what comes next is what that rests on.
            Self::Store(error) => error.source(),
            Self::NoRandomBits(error) => error.source(),
            Self::OtherLayout { .. } | Self::OtherWorkers { .. } => None,
        }
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self::Store(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_plainly_wrong_is_told_with_its_year_and_the_command() {
        let waiting = Waiting::WrongTimes { until: 1_830_297_600_000, ahead_hours: 8760 };
        let text = waiting.to_string();
        for part in [
            "plainly wrong",
            "at 2028-01-01T00:00:00.000Z",
            "365 days",
            "frazil store repair --wrong-times",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
        let namespace = "orders".parse().unwrap();
        assert_eq!(
            repair_command(&"etcd://10.0.0.1:2379", Some(&namespace)),
            "frazil store repair --wrong-times --store 'etcd://10.0.0.1:2379' --namespace orders"
        );
        let hidden = repair_command(&"redis://app:***@10.0.0.1:6379", None);
        assert!(hidden.ends_with("(with the password in place of ***)"), "{hidden}");
    }

    #[test]
    fn a_pool_that_a_wrong_clock_used_up_is_told_with_what_helps() {
        let told = |held, blocked| {
            let census = Census { held, blocked, poisoned: 2, next_floor: None };
            Waiting::Pool(census).to_string().contains("frazil workers repair W --last-issued ID")
        };
        assert!(told(0, 0));
        assert!(!told(1, 0) && !told(0, 1), "one will be free");
    }
}
