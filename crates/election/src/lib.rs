//! Leader election, jobs spread over nodes, and fences, over the stores of [`frazil_coord`].
//!
//! | to | see |
//! |---|---|
//! | lead, or follow who leads | [`Elections`] |
//! | spread jobs over nodes, each led by one | [`processor`] |
//! | refuse the late writes of a former leader | [`fence`] |

mod election;
pub mod fence;
mod panicked;
pub mod processor;

pub use self::election::{
    Callbacks, Candidate, CandidateError, Clock, ElectionInfo, Elections, Elector, Forgotten,
    LeaderInfo, LeaderLoss, Leadership, NotLeader, Observer, Pace, Periodic, Proof, Settings,
    SettingsError, State, Turn, Variable, VariableError, View, run, run_until, store_url,
};

/// The page of the crate, run as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
