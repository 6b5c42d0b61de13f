//! The broken variants of the model and the mutants of real processes: the same rules, broken alike.

use frazil::coord::mutant::NAMES;

use crate::variant::Variant;

/// Of the model: all that break a rule of leasing.
const BROKEN: [Variant; 9] = [
    Variant::NoHorizon,
    Variant::HorizonInTheExpiringKey,
    Variant::StartAtWallClock,
    Variant::ExtendWithoutToken,
    Variant::UseBeforeAcknowledgement,
    Variant::ReacquireByName,
    Variant::ReleaseBeforeClose,
    Variant::ResumedAfterRelease,
    Variant::TakeIfFree,
];
/// Of real processes: what the model does not have. It knows nothing of leaders, and takes a
/// quarantine and rising tokens for granted.
const APART: [&str; 3] = ["forget-quarantine", "stale-leader", "unfenced-tokens"];

impl Variant {
    /// The mutant of a real process that breaks the same rule, if there is one: see
    /// `frazil_coord::mutant`. The others need a fail-over that loses writes, or an operator.
    const fn mutant(self) -> Option<&'static str> {
        match self {
            Self::NoHorizon => Some("no-horizon"),
            Self::HorizonInTheExpiringKey => Some("horizon-in-lease"),
            Self::StartAtWallClock => Some("start-at-clock"),
            Self::ExtendWithoutToken => Some("extend-without-token"),
            Self::UseBeforeAcknowledgement => Some("raise-on-send"),
            Self::ReacquireByName => Some("reacquire-by-name"),
            Self::ReleaseBeforeClose => Some("release-before-close"),
            Self::ResumedAfterRelease => Some("resume-after-release"),
            Self::TakeIfFree => Some("take-if-free"),
            Self::Correct
            | Self::ExtendInAnotherLineage
            | Self::RepeatInAnotherLineage
            | Self::StackedFloors
            | Self::RolledBack
            | Self::QuarantinedOnly
            | Self::MendedByAnOldClock => None,
        }
    }
}

#[test]
fn every_broken_rule_of_the_model_is_a_mutant_too_and_every_other_mutant_is_known() {
    let mut named: Vec<&str> = BROKEN.iter().filter_map(|variant| variant.mutant()).collect();
    assert_eq!(named.len(), BROKEN.len());
    named.extend(APART);
    named.sort_unstable();
    let mut known = NAMES.to_vec();
    known.sort_unstable();
    assert_eq!(named, known);
}

#[test]
fn the_rules_as_they_are_have_no_mutant() {
    assert_eq!(Variant::Correct.mutant(), None);
}
