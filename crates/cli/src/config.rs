//! The configuration of a server: flags over the environment over a file over the defaults.
//!
//! [`KEYS`] says which key of the file is which argument of the command line. What the file and the
//! environment say becomes the *default* of those arguments, so that there is one parser and one
//! meaning for each value, whoever gave it. Everything is checked, and all problems are reported at
//! once.

mod context;
mod document;
mod key;
mod layers;
mod problem;
mod rules;
mod server;
mod suggestion;
mod variables;

use crate::args::ServeArgs;

pub(crate) use self::key::{KEYS, Key, Kind};
pub(crate) use self::layers::{
    Setting, Settings, named_file, parse_command_line, settings_command,
};
use self::problem::Origin;
pub(crate) use self::problem::Problem;
pub(crate) use self::server::{readable_config, server_config, store_url, timing};
pub(crate) use self::suggestion::closest;

/// Whether the files that a configuration names are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Files {
    Look,
    Ignore,
}

/// Why there is no configuration.
#[derive(Debug)]
pub(crate) enum Wrong {
    /// The file cannot be read.
    Unreadable(String),
    /// Everything that is wrong.
    Problems(Vec<Problem>),
}

/// The configuration of a command line, if nothing is wrong with it.
pub(crate) fn load(flags: &ServeArgs, files: Files) -> Result<Settings, Wrong> {
    let Examined { settings, problems, .. } = examine(flags, files)?;
    if problems.is_empty() { Ok(settings) } else { Err(Wrong::Problems(problems)) }
}

/// What can be understood of a configuration; values that make no sense are left out.
pub(crate) struct Examined {
    pub(crate) settings: Settings,
    pub(crate) problems: Vec<Problem>,
    /// Whether the file could be understood.
    pub(crate) is_whole: bool,
}

impl Examined {
    /// Whether somebody said something about this key that makes no sense.
    pub(crate) fn left_out(&self, path: &str) -> bool {
        let is_wrong = self.problems.iter().any(|problem| problem.key().as_deref() == Some(path));
        is_wrong && self.settings.setting(path).origin == Origin::Default
    }
}

/// The configuration of a command line with everything that is wrong.
pub(crate) fn examine(flags: &ServeArgs, files: Files) -> Result<Examined, Wrong> {
    let loaded = layers::load(flags)?;
    let mut problems = loaded.problems;
    if loaded.is_whole {
        let known: Vec<String> = problems.iter().filter_map(|problem| problem.key()).collect();
        let is_new = |problem: &Problem| !problem.concerns(&known);
        problems.extend(rules::check(&loaded.settings, files).into_iter().filter(is_new));
    }
    problems.sort_by_key(Problem::rank);
    Ok(Examined { settings: loaded.settings, problems, is_whole: loaded.is_whole })
}

/// The values of a command line, whether or not they go together.
pub(crate) fn load_values(flags: &ServeArgs) -> Result<Settings, Wrong> {
    let layers::Loaded { settings, problems, .. } = layers::load(flags)?;
    if problems.is_empty() { Ok(settings) } else { Err(Wrong::Problems(problems)) }
}

impl Wrong {
    /// Each problem on its own.
    pub(crate) fn lines(&self) -> Vec<String> {
        match self {
            Self::Unreadable(why) => vec![why.clone()],
            Self::Problems(problems) => problems.iter().map(ToString::to_string).collect(),
        }
    }
}

#[cfg(test)]
mod tests;
