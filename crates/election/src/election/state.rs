//! The states of a candidate.

use std::fmt;

use frazil_coord::{Loss, Token};

/// Where a candidate stands. Leadership is told of with its token, so that what is said of one
/// term is never taken for another.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum State {
    /// It does not campaign.
    Follower,
    /// It campaigns.
    Candidate,
    /// It leads.
    Leader {
        /// With this token.
        token: Token,
    },
    /// It leads, but a renewal failed: unless one succeeds, it will not for long.
    Jeopardy {
        /// With this token.
        token: Token,
    },
    /// It led.
    Lost {
        /// With this token.
        token: Token,
        /// And this happened.
        loss: LeaderLoss,
    },
}

/// Why a leader leads no more.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LeaderLoss {
    /// It did not renew in time.
    Expired,
    /// Somebody else leads.
    Superseded {
        /// Who.
        holder: String,
    },
    /// The store forgot or went back in its history.
    StoreLost,
    /// It resigned, or an operator took it away.
    Released,
}

impl State {
    /// The state in a word.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Follower => "follower",
            Self::Candidate => "candidate",
            Self::Leader { .. } => "leader",
            Self::Jeopardy { .. } => "jeopardy",
            Self::Lost { .. } => "lost",
        }
    }
}

impl LeaderLoss {
    /// The reason in a word.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Expired => "expired",
            Self::Superseded { .. } => "superseded",
            Self::StoreLost => "store-lost",
            Self::Released => "released",
        }
    }
}

impl From<Loss> for LeaderLoss {
    fn from(loss: Loss) -> Self {
        match loss {
            Loss::Superseded { holder, .. } | Loss::Overlapped { holder, .. } => {
                Self::Superseded { holder }
            }
            Loss::Released => Self::Released,
            Loss::Lapsed => Self::Expired,
            // Vanished and regressed, and whatever else a store may come to know.
            _ => Self::StoreLost,
        }
    }
}

impl fmt::Display for LeaderLoss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Expired => f.write_str("it was not renewed in time"),
            Self::Superseded { holder } => write!(f, "{holder} leads now"),
            Self::StoreLost => f.write_str("the store has forgotten it"),
            Self::Released => f.write_str("it was given up"),
        }
    }
}
