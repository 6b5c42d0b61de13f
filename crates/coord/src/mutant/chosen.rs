//! Which mutant this process is, if any.

use std::sync::OnceLock;

use super::Mutant;
pub use super::scripts::rewrite;

/// The environment variable that names a mutant.
pub const VARIABLE: &str = "FRAZIL_MUTANT";

/// The mutants of this crate.
pub const NAMES: &[&str] = &[
    "no-horizon",
    "horizon-in-lease",
    "start-at-clock",
    "extend-without-token",
    "raise-on-send",
    "reacquire-by-name",
    "release-before-close",
    "resume-after-release",
    "take-if-free",
    "forget-quarantine",
    "stale-leader",
    "unfenced-tokens",
];

/// Whether this process is that mutant. The variable is read once.
#[must_use]
pub fn is(mutant: Mutant) -> bool {
    static CHOSEN: OnceLock<Option<Mutant>> = OnceLock::new();
    *CHOSEN.get_or_init(|| named(&std::env::var(VARIABLE).ok()?)) == Some(mutant)
}

fn named(name: &str) -> Option<Mutant> {
    Some(match name {
        "no-horizon" => Mutant::NoHorizon,
        "horizon-in-lease" => Mutant::HorizonInLease,
        "start-at-clock" => Mutant::StartAtClock,
        "extend-without-token" => Mutant::ExtendWithoutToken,
        "raise-on-send" => Mutant::RaiseOnSend,
        "reacquire-by-name" => Mutant::ReacquireByName,
        "release-before-close" => Mutant::ReleaseBeforeClose,
        "resume-after-release" => Mutant::ResumeAfterRelease,
        "take-if-free" => Mutant::TakeIfFree,
        "forget-quarantine" => Mutant::ForgetQuarantine,
        "stale-leader" => Mutant::StaleLeader,
        "unfenced-tokens" => Mutant::UnfencedTokens,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_a_mutant_of_its_own() {
        let known: Vec<Mutant> = NAMES.iter().filter_map(|name| named(name)).collect();
        assert_eq!(known.len(), NAMES.len());
        for (place, mutant) in known.iter().enumerate() {
            assert!(!known[..place].contains(mutant), "{mutant:?}");
        }
        assert_eq!(named("no-such"), None);
    }

    #[test]
    fn a_name_is_the_variant_in_small_letters() {
        for name in NAMES {
            let variant = format!("{:?}", named(name).expect("a mutant"));
            assert_eq!(name.replace('-', ""), variant.to_lowercase());
        }
    }
}
