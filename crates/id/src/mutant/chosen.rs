//! Which mutant this process is, if any.

use std::sync::OnceLock;

use super::Mutant;

/// The environment variable that names a mutant.
pub const VARIABLE: &str = "FRAZIL_MUTANT";

/// The mutants of this crate.
pub const NAMES: &[&str] = &["no-last-tick", "sequence-overflow"];

/// Whether this process is that mutant. The variable is read once.
pub(crate) fn is(mutant: Mutant) -> bool {
    static CHOSEN: OnceLock<Option<Mutant>> = OnceLock::new();
    *CHOSEN.get_or_init(|| named(&std::env::var(VARIABLE).ok()?)) == Some(mutant)
}

fn named(name: &str) -> Option<Mutant> {
    match name {
        "no-last-tick" => Some(Mutant::NoLastTick),
        "sequence-overflow" => Some(Mutant::SequenceOverflow),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_a_mutant_of_its_own() {
        let known: std::vec::Vec<Mutant> = NAMES.iter().filter_map(|name| named(name)).collect();
        assert_eq!(known, [Mutant::NoLastTick, Mutant::SequenceOverflow]);
        assert_eq!(named("no-such"), None);
    }
}
