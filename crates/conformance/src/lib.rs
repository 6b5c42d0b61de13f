//! The contract of a store, as a suite of cases that any store can be put through.
//!
//! A test gives a [`Subject`] (how to open the store, and how to hurt it) to [`run`]. Each case
//! works in a namespace of its own, names the defects of the field that it catches, and is shown
//! to catch them on a naive store.
//!
//! [`Faulty`] puts a store behind a network that loses, doubles and delays. [`InMemory`] is the subject
//! of the memory store, to begin from.

mod amnesia;
mod commits;
mod crowd;
mod faulty;
mod in_memory;
mod outage;
mod ownership;
mod records;
mod subject;
mod tenure;

use std::fmt;
use std::future::Future;
use std::pin::Pin;

pub use self::faulty::{Chances, Faults, Faulty};
pub use self::in_memory::InMemory;
pub use self::subject::{Bench, Subject};

/// One case of the contract.
#[derive(Clone, Copy)]
pub struct Case {
    /// What must hold, as a sentence.
    pub name: &'static str,
    /// The defects that it catches, by their numbers in docs/guarantees.md.
    pub catches: &'static [&'static str],
    run: for<'a> fn(&'a Bench) -> CaseResult<'a>,
}

type CaseResult<'a> = Pin<Box<dyn Future<Output = Result<(), Violation>> + Send + 'a>>;

/// How a store broke the contract.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation(String);

impl Case {
    /// Puts the store through this case.
    ///
    /// # Errors
    /// How it broke the contract.
    pub async fn check(&self, subject: &dyn Subject) -> Result<(), Violation> {
        let bench = Bench::open(subject, self.name).await?;
        (self.run)(&bench).await
    }
}

impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// Every case.
#[must_use]
pub fn cases() -> Vec<Case> {
    let kinds = [
        ownership::CASES,
        tenure::CASES,
        records::CASES,
        commits::CASES,
        amnesia::CASES,
        crowd::CASES,
        outage::CASES,
    ];
    kinds.concat()
}

/// Puts the store through every case.
///
/// # Errors
/// Every case that it failed, and how.
pub async fn run(subject: &dyn Subject) -> Result<(), Violation> {
    let mut failures = Vec::new();
    for case in cases() {
        if let Err(violation) = case.check(subject).await {
            failures.push(format!("{}: {violation}", case.name));
        }
    }
    if failures.is_empty() { Ok(()) } else { Err(Violation(failures.join("\n"))) }
}

impl Violation {
    /// A violation, said in a sentence.
    pub fn new(what: impl fmt::Display) -> Self {
        Self(what.to_string())
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Violation {}

impl From<frazil_coord::Error> for Violation {
    fn from(error: frazil_coord::Error) -> Self {
        Self(format!("{error:#}"))
    }
}

/// Declares cases: each a function of the bench.
macro_rules! declare_cases {
    ($($run:ident $catches:tt $name:literal),* $(,)?) => {
        pub(crate) const CASES: &[Case] = &[$(Case {
            name: $name,
            catches: &$catches,
            run: |bench| Box::pin($run(bench)),
        }),*];
    };
}

/// Fails the case unless the condition holds.
macro_rules! ensure {
    ($condition:expr, $($said:tt)+) => {
        if !$condition {
            return Err(Violation::new(format_args!($($said)+)));
        }
    };
}

/// Takes a value out of the one outcome that is right, or fails the case.
macro_rules! want {
    ($outcome:expr, $pattern:pat => $value:expr) => {
        match $outcome {
            $pattern => $value,
            other => {
                let wanted = stringify!($pattern);
                return Err(Violation::new(format_args!("wanted {wanted}, got {other:?}")));
            }
        }
    };
}

use {declare_cases, ensure, want};

/// The page of the crate, run as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
