//! The filter of the log: a level for what is ours, and others for single targets.

use std::fmt;
use std::str::FromStr;

use tracing::level_filters::LevelFilter;

/// A level for Frazil's own targets, and levels for those that are named. Libraries that are not
/// named warn, as far as Frazil itself does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Filter {
    own: LevelFilter,
    named: Vec<(String, LevelFilter)>,
}

impl Filter {
    /// Up to which level a target is logged: as the longest name says that it begins with.
    pub(super) fn level_of(&self, target: &str) -> LevelFilter {
        let fits = |name: &str| {
            let rest = target.strip_prefix(name);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
        };
        let named = self.named.iter().filter(|(name, _)| fits(name));
        match named.max_by_key(|(name, _)| name.len()) {
            Some((_, level)) => *level,
            None if is_own(target) => self.own,
            None => self.libraries(),
        }
    }

    /// The highest level that any target is logged at.
    pub(super) fn highest(&self) -> LevelFilter {
        let named = self.named.iter().map(|(_, level)| *level);
        named.chain([self.own, self.libraries()]).max().unwrap_or(LevelFilter::OFF)
    }

    fn libraries(&self) -> LevelFilter {
        self.own.min(LevelFilter::WARN)
    }
}

fn is_own(target: &str) -> bool {
    let rest = target.strip_prefix("frazil");
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with("::") || rest.starts_with('_'))
}

impl FromStr for Filter {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut own = None;
        let mut named: Vec<(String, LevelFilter)> = Vec::new();
        for part in text.split(',').map(str::trim) {
            let Some((target, word)) = part.split_once('=') else {
                if own.replace(level(part)?).is_some() {
                    return Err("name one level, and further ones as target=level".to_owned());
                }
                continue;
            };
            if !is_target(target) {
                return Err(format!("{target:?} is no target: write it as frazil_coord=debug"));
            }
            if named.iter().any(|(name, _)| name == target) {
                return Err(format!("the target {target} is named twice"));
            }
            named.push((target.to_owned(), level(word)?));
        }
        Ok(Self { own: own.unwrap_or(LevelFilter::INFO), named })
    }
}

fn is_target(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"_:-".contains(&b))
}

fn level(word: &str) -> Result<LevelFilter, String> {
    match word.to_ascii_lowercase().as_str() {
        "off" => Ok(LevelFilter::OFF),
        "error" => Ok(LevelFilter::ERROR),
        "warn" => Ok(LevelFilter::WARN),
        "info" => Ok(LevelFilter::INFO),
        "debug" => Ok(LevelFilter::DEBUG),
        "trace" => Ok(LevelFilter::TRACE),
        _ => Err("write off, error, warn, info, debug or trace, and for single targets \
                  target=level behind a comma"
            .to_owned()),
    }
}

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.own)?;
        self.named.iter().try_for_each(|(target, level)| write!(f, ",{target}={level}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(text: &str) -> Filter {
        text.parse().unwrap()
    }

    #[test]
    fn a_bare_level_concerns_our_own_targets_alone() {
        let debug = filter("debug");
        for (target, level) in [
            ("frazil", LevelFilter::DEBUG),
            ("frazil::commands::serve", LevelFilter::DEBUG),
            ("frazil_coord::keeper", LevelFilter::DEBUG),
            ("frazilish", LevelFilter::WARN),
            ("h2::proto", LevelFilter::WARN),
        ] {
            assert_eq!(debug.level_of(target), level, "{target}");
        }
        assert_eq!(filter("error").level_of("h2"), LevelFilter::ERROR);
        assert_eq!(filter("off").highest(), LevelFilter::OFF);
    }

    #[test]
    fn the_longest_name_that_fits_decides() {
        let filter = filter("warn, h2=trace,frazil_coord=debug,frazil_coord::keeper=error");
        for (target, level) in [
            ("frazil_server", LevelFilter::WARN),
            ("frazil_coord::stores", LevelFilter::DEBUG),
            ("frazil_coord::keeper::driver", LevelFilter::ERROR),
            ("frazil_coordinates", LevelFilter::WARN),
            ("h2::frame", LevelFilter::TRACE),
        ] {
            assert_eq!(filter.level_of(target), level, "{target}");
        }
        assert_eq!(filter.highest(), LevelFilter::TRACE);
    }

    #[test]
    fn without_a_bare_level_it_is_info() {
        assert_eq!(filter("h2=off").level_of("frazil"), LevelFilter::INFO);
        assert_eq!(filter("h2=off").level_of("h2"), LevelFilter::OFF);
    }

    #[test]
    fn what_is_no_filter_says_what_to_write() {
        for (text, part) in [
            ("loud", "debug"),
            ("", "debug"),
            ("info,debug", "target=level"),
            ("h2=", "trace"),
            ("=info", "no target"),
            ("a b=info", "no target"),
            ("h2=info,h2=warn", "twice"),
        ] {
            let why = text.parse::<Filter>().unwrap_err();
            assert!(why.contains(part), "{text}: {why}");
        }
    }
}
