//! A small harness that measures contenders side by side.
//!
//! | to | see |
//! |---|---|
//! | describe what is measured | [`Case`] |
//! | measure one of them for a time, on some threads | [`run()`], [`Run`] |
//! | measure several in interleaved rounds | [`compare()`], [`Plan`], [`Comparison`] |
//! | know what the machine allows | [`sleeper()`] |
//! | print what came out | [`Table`], [`verdict()`] |
//! | say where it was measured | [`machine()`], [`cores()`], [`thread_counts()`] |
//! | choose between a full and a quick measurement | [`Pace`] |
//! | issue IDs that no sequence caps | [`wide_layout()`] |

mod case;
mod compare;
mod control;
mod machine;
mod pace;
mod run;
mod table;
mod verdict;
mod wide;

pub use self::case::Case;
pub use self::compare::{Comparison, Plan, compare};
pub use self::control::sleeper;
pub use self::machine::{cores, machine, thread_counts};
pub use self::pace::Pace;
pub use self::run::{Run, run};
pub use self::table::Table;
pub use self::verdict::verdict;
pub use self::wide::wide_layout;
