//! The filter of the log: a level for what is ours, and others for single targets.

use std::fmt;
use std::str::FromStr;

use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;

/// A level for Frazil's own targets, and levels for those that are named. Libraries that are not
/// named warn, as far as Frazil itself does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    own: LevelFilter,
    named: Vec<(String, LevelFilter)>,
}

/// A text that is no [`Filter`], with what to write instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidFilter(String);

impl fmt::Display for InvalidFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for InvalidFilter {}

impl Filter {
    /// Up to which level each target is logged: as the longest name says that it begins with.
    pub(super) fn targets(&self) -> Targets {
        Targets::new()
            .with_default(self.own.min(LevelFilter::WARN))
            .with_target("frazil", self.own)
            .with_targets(self.named.iter().cloned())
    }
}

impl FromStr for Filter {
    type Err = InvalidFilter;

    fn from_str(text: &str) -> Result<Self, InvalidFilter> {
        let mut own = None;
        let mut named: Vec<(String, LevelFilter)> = Vec::new();
        for part in text.split(',').map(str::trim) {
            let Some((target, word)) = part.split_once('=') else {
                if own.replace(level(part)?).is_some() {
                    return Err(InvalidFilter(
                        "name one level, and further ones as target=level".into(),
                    ));
                }
                continue;
            };
            if !is_target(target) {
                let why = format!("{target:?} is no target: write it as frazil_coord=debug");
                return Err(InvalidFilter(why));
            }
            if named.iter().any(|(name, _)| name == target) {
                return Err(InvalidFilter(format!("the target {target} is named twice")));
            }
            named.push((target.to_owned(), level(word)?));
        }
        Ok(Self { own: own.unwrap_or(LevelFilter::INFO), named })
    }
}

fn is_target(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"_:-".contains(&b))
}

fn level(word: &str) -> Result<LevelFilter, InvalidFilter> {
    match word.to_ascii_lowercase().as_str() {
        "off" => Ok(LevelFilter::OFF),
        "error" => Ok(LevelFilter::ERROR),
        "warn" => Ok(LevelFilter::WARN),
        "info" => Ok(LevelFilter::INFO),
        "debug" => Ok(LevelFilter::DEBUG),
        "trace" => Ok(LevelFilter::TRACE),
        _ => Err(InvalidFilter(
            "write off, error, warn, info, debug or trace, and for single targets \
             target=level behind a comma"
                .into(),
        )),
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
    use tracing::Level;

    use super::*;

    /// Up to which level a filter lets a target through.
    fn level_of(text: &str, target: &str) -> LevelFilter {
        let targets = text.parse::<Filter>().unwrap().targets();
        let levels = [Level::TRACE, Level::DEBUG, Level::INFO, Level::WARN, Level::ERROR];
        let highest = levels.into_iter().find(|level| targets.would_enable(target, level));
        highest.map_or(LevelFilter::OFF, LevelFilter::from_level)
    }

    #[test]
    fn a_bare_level_concerns_our_own_targets_alone() {
        for (target, level) in [
            ("frazil", LevelFilter::DEBUG),
            ("frazil::commands::serve", LevelFilter::DEBUG),
            ("frazil_coord::keeper", LevelFilter::DEBUG),
            ("h2::proto", LevelFilter::WARN),
        ] {
            assert_eq!(level_of("debug", target), level, "{target}");
        }
        assert_eq!(level_of("error", "h2"), LevelFilter::ERROR);
        assert_eq!(level_of("off", "frazil"), LevelFilter::OFF);
    }

    #[test]
    fn the_longest_name_that_fits_decides() {
        let filter = "warn, h2=trace,frazil_coord=debug,frazil_coord::keeper=error";
        for (target, level) in [
            ("frazil_server", LevelFilter::WARN),
            ("frazil_coord::stores", LevelFilter::DEBUG),
            ("frazil_coord::keeper::driver", LevelFilter::ERROR),
            ("h2::frame", LevelFilter::TRACE),
        ] {
            assert_eq!(level_of(filter, target), level, "{target}");
        }
    }

    #[test]
    fn without_a_bare_level_it_is_info() {
        assert_eq!(level_of("h2=off", "frazil"), LevelFilter::INFO);
        assert_eq!(level_of("h2=off", "h2"), LevelFilter::OFF);
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
            let why = text.parse::<Filter>().unwrap_err().to_string();
            assert!(why.contains(part), "{text}: {why}");
        }
    }
}
