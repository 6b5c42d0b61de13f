//! Claims, tenures and how they end: the words of the [`protocol`](crate::protocol).

use std::collections::BTreeMap;
use std::time::Duration;

use crate::error::Error;
use crate::nonce::Nonce;
use crate::record::{Meta, Record, Token, UnixMs, Version, Versioned};
use crate::slot::{Group, Slot};

/// A wish for a slot.
#[derive(Clone, Debug)]
pub struct Claim {
    /// Which.
    pub choice: Choice,
    /// Minted for this claim; a repetition keeps it.
    pub nonce: Nonce,
    /// Who asks, for people to read.
    pub holder: String,
    /// More about who asks.
    pub info: BTreeMap<String, String>,
    /// How long presence lasts without renewal.
    pub ttl: Duration,
    /// Now, by the clock that the slot's times will come from.
    pub now: UnixMs,
    /// The horizon wanted.
    pub ask: UnixMs,
    /// Of meta: no horizon is further from now than this. 0 if no times are used.
    pub window_ms: u64,
    /// Of meta: the tenure starts above this.
    pub quarantine: UnixMs,
    /// The version of meta that the two were read from.
    pub meta: Version,
}

impl Claim {
    /// A claim that nobody makes: to judge slots by the rules, at a time and under a meta record.
    #[must_use]
    pub fn to_judge(meta: &Versioned<Meta>, now: UnixMs) -> Self {
        Self {
            choice: Choice::Any {
                first: meta.value.first_worker,
                last: meta.value.last_worker,
                favourite: None,
            },
            nonce: Nonce::from_bits(0),
            holder: String::new(),
            info: BTreeMap::new(),
            ttl: Duration::ZERO,
            now,
            ask: now,
            window_ms: meta.value.window_ms,
            quarantine: meta.value.quarantine,
            meta: meta.version,
        }
    }

    /// The kind of slot that is claimed.
    #[must_use]
    pub const fn group(&self) -> Group {
        match &self.choice {
            Choice::This(slot, _) => slot.group(),
            Choice::Any { .. } => Group::Workers,
        }
    }
}

/// Which slot a claim wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    /// This one, as it was read; version 0 if it does not exist yet.
    This(Slot, Version),
    /// Any worker of a range.
    Any {
        /// The first.
        first: u32,
        /// The last.
        last: u32,
        /// The one to try before others, if its floor has passed.
        favourite: Option<u32>,
    },
}

/// How a claim ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Acquired {
    /// The slot is held.
    Held(Tenure),
    /// [`Choice::This`]: somebody is present in it, or it is not the version that was read. Of any
    /// choice: the claim was served once, and somebody else may have had the slot since.
    Taken,
    /// Nothing can be taken now; when that may change.
    Full(Census),
    /// Meta is not what the claim was based on. Read it again.
    MetaMoved,
    /// The claim's clock differs from the store's, which shows this time, by more than
    /// [`CLOCK_BOUND_MS`](crate::rules::CLOCK_BOUND_MS). Nothing was written.
    ClockOff {
        /// The store's clock.
        store_now: UnixMs,
    },
    /// The request for this slot and version may have been carried out. Repeat the claim with
    /// [`Choice::This`] and the same nonce until the answer is definite; to walk on would leak a
    /// slot that one's own presence keeps alive.
    Unsure(Slot, Version),
    /// The slot was taken over, and the store may still lose that, for this reason. Repeat the claim
    /// as for [`Unsure`](Self::Unsure) until it cannot.
    Unsettled(Slot, Version, Error),
}

/// Why a pool had nothing to give.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Census {
    /// Slots with somebody present.
    pub held: u32,
    /// Free slots whose floor is too far ahead of now.
    pub blocked: u32,
    /// Free slots whose floor no correct holder can have reached: see `frazil workers repair`.
    pub poisoned: u32,
    /// The lowest floor of the blocked ones.
    pub next_floor: Option<UnixMs>,
}

/// The right to a slot, as last acknowledged by the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tenure {
    /// Which slot.
    pub slot: Slot,
    /// Rises with every acquisition.
    pub token: Token,
    /// What the holder is recognised by.
    pub nonce: Nonce,
    /// Who holds, for people to read.
    pub holder: String,
    /// More about who holds.
    pub info: BTreeMap<String, String>,
    /// Of the record, as last seen.
    pub version: Version,
    /// Only times after this may be used.
    pub floor: UnixMs,
    /// What the record says: a successor starts above it.
    pub horizon: UnixMs,
    /// When the holder last wrote, by its own clock.
    pub renewed: UnixMs,
    /// No time after this may be used: the horizon, or less while the store may still lose it.
    pub usable: UnixMs,
    /// When presence ends by the store's clock, if it has one.
    pub expires: Option<UnixMs>,
    /// The store's clock when it answered, if it has one.
    pub store_now: Option<UnixMs>,
    /// The namespace's incarnation when the slot was acquired.
    pub incarnation: Nonce,
    /// What the store may still lose of all this.
    pub settling: Settling,
}

/// How much of a tenure the store can no longer lose.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settling {
    /// The history that acknowledged last; empty where nothing is ever lost.
    pub history: String,
    /// Whether nobody else can have taken the slot in that history without its having settled.
    pub settles: bool,
    /// The highest horizon that cannot be lost any more.
    pub settled: UnixMs,
    /// Horizons that may be lost still, each with the store's clock when it was acknowledged, in
    /// the order of time.
    pub pending: Vec<(UnixMs, UnixMs)>,
}

impl Tenure {
    /// The record as the holder knows it.
    #[must_use]
    pub fn record(&self) -> Record {
        Record {
            token: self.token,
            nonce: Some(self.nonce),
            holder: self.holder.clone(),
            floor: self.floor,
            horizon: self.horizon,
            renewed: self.renewed,
            expires: None,
            released: false,
            info: self.info.clone(),
        }
    }
}

/// What an extension asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask {
    /// The horizon wanted.
    pub horizon: UnixMs,
    /// How long presence lasts without renewal.
    pub ttl: Duration,
    /// Now, by the holder's clock.
    pub now: UnixMs,
    /// Of meta: no horizon is further from now than this.
    pub window_ms: u64,
}

/// How an extension ended.
#[expect(clippy::large_enum_variant, reason = "each is handed on once, and never kept")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Extended {
    /// Held on, with what is acknowledged now.
    Held(Tenure),
    /// The tenure is over.
    Lost(Loss),
}

/// Why a tenure is over.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Loss {
    /// Somebody else acquired the slot.
    Superseded {
        /// With this token.
        token: Token,
        /// Who.
        holder: String,
    },
    /// Somebody else acquired the slot from a store that had forgotten this tenure, and may use
    /// the same times: no more of them may be used.
    Overlapped {
        /// With this token.
        token: Token,
        /// Who.
        holder: String,
    },
    /// The slot was released under this tenure's own mark, by itself or by an operator.
    Released,
    /// The record or the namespace's meta is gone: the store has forgotten.
    Vanished,
    /// Presence lapsed, and the store cannot tell whether it lost writes since.
    Lapsed,
    /// The store went back in its own history.
    Regressed,
}

impl Loss {
    /// The word of every way of losing.
    pub const WORDS: [&'static str; 6] =
        ["superseded", "overlapped", "released", "vanished", "lapsed", "regressed"];

    /// It in a word, as a label of metrics.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Superseded { .. } => "superseded",
            Self::Overlapped { .. } => "overlapped",
            Self::Released => "released",
            Self::Vanished => "vanished",
            Self::Lapsed => "lapsed",
            Self::Regressed => "regressed",
        }
    }
}

/// How a release ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Released {
    /// The slot is free.
    Done,
    /// The tenure was over already. Nothing was written.
    NotHeld,
}

/// What became of a slot that was to be forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forgotten {
    /// It is gone, as if it had never been.
    Done,
    /// Somebody holds it. It stays.
    Held,
    /// Somebody held it a moment ago, and what was started then may still run. It stays.
    Recent {
        /// How long it is until it can be forgotten.
        wait: Duration,
    },
    /// There is no such slot.
    Unknown,
}

/// Why and until when a store lets nobody new in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guard {
    /// New tenures start above this time.
    pub until: UnixMs,
    /// Why, in a sentence.
    pub reason: String,
}
