//! Suggestions for keys and sections that do not exist.

use super::key::{KEYS, sections};

/// What to write instead of a section that there is not.
pub(super) fn for_section(wrong: &str) -> String {
    if let Some(key) = KEYS.iter().find(|key| key.name == wrong) {
        return format!(
            "there is no such section; did you mean {} in [{}]?",
            key.name, key.section
        );
    }
    match closest(wrong, sections()) {
        Some(section) => format!("there is no such section; did you mean [{section}]?"),
        None => {
            let all: Vec<_> = sections().map(|section| format!("[{section}]")).collect();
            format!("there is no such section; there are {}", all.join(", "))
        }
    }
}

/// What to write instead of a key that the section has not.
pub(super) fn for_key(section: &str, wrong: &str) -> String {
    let inside = || KEYS.iter().filter(move |key| key.section == section).map(|key| key.name);
    if let Some(name) = closest(wrong, inside()) {
        return format!("there is no such key; did you mean {name}?");
    }
    // Under its own name, or under that of its flag.
    let dashless = wrong.replace('-', "_");
    let elsewhere = KEYS.iter().find(|key| key.name == dashless || key.argument == dashless);
    match elsewhere {
        Some(key) => {
            format!("there is no such key; did you mean {} in [{}]?", key.name, key.section)
        }
        None => {
            let all: Vec<_> = inside().collect();
            format!("there is no such key; [{section}] has {}", all.join(", "))
        }
    }
}

/// The word that is closest, if one is close enough to have been meant.
pub(crate) fn closest<'a>(wrong: &str, words: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let most = (wrong.chars().count() / 3).max(1);
    let near = words.map(|word| (strsim::damerau_levenshtein(wrong, word), word));
    near.filter(|(distance, _)| *distance <= most).min().map(|(_, word)| word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_pen_is_told_what_was_meant() {
        for (section, wrong, meant) in [
            ("lease", "hearbeat", "mean heartbeat?"),
            ("lease", "heart-beat", "mean heartbeat?"),
            ("limits", "max_conections", "mean max_connections?"),
            ("listen", "https", "mean http?"),
            ("lease", "max_count", "max_count in [limits]?"),
            ("lease", "drain-delay", "delay in [drain]?"),
            ("lease", "colour", "has ttl, heartbeat, outage_budget"),
        ] {
            let said = for_key(section, wrong);
            assert!(said.contains(meant), "{wrong}: {said}");
        }
        for (wrong, meant) in [
            ("leases", "mean [lease]?"),
            ("ttl", "ttl in [lease]?"),
            ("colours", "[listen], [tls], [auth]"),
        ] {
            let said = for_section(wrong);
            assert!(said.contains(meant), "{wrong}: {said}");
        }
    }
}
