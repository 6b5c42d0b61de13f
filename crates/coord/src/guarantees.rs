//! The promises of a store, as data: logged, shown, exported.

use serde::Serialize;

/// What a store gives and what voids it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Guarantees {
    /// The kind of store and how it is set up, in a few words.
    pub store: String,
    /// How strong uniqueness is.
    pub uniqueness: Strength,
    /// What uniqueness rests on, in a sentence.
    pub because: String,
    /// Whether two may believe to lead at a time, in a sentence.
    pub leadership: String,
    /// What fencing tokens are worth, in a sentence.
    pub token: String,
    /// What would void the promise.
    pub voided_by: Vec<String>,
    /// What weakens it as the store is set up now, each with the remedy.
    pub warnings: Vec<String>,
}

/// How strong a promise is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Strength {
    /// Holds while stated conditions about clocks or failures hold.
    Conditional,
    /// Holds whatever clocks, schedulers and networks do, as long as the store keeps what it
    /// acknowledged.
    Unconditional,
}

impl Guarantees {
    /// Those of a store of this kind, with nothing said yet of what they rest on.
    #[must_use]
    pub fn new(store: impl Into<String>, uniqueness: Strength) -> Self {
        Self {
            store: store.into(),
            uniqueness,
            because: String::new(),
            leadership: String::new(),
            token: String::new(),
            voided_by: Vec::new(),
            warnings: Vec::new(),
        }
    }
}

impl Strength {
    /// The strength in a word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Conditional => "conditional",
            Self::Unconditional => "unconditional",
        }
    }
}
