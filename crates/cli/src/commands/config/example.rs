//! `frazil config example`: a file with every key.

use std::iter;

use clap::Arg;

use super::toml_text;
use crate::args::ConfigExampleArgs;
use crate::config::{KEYS, Key, settings_command};
use crate::output::{Data, Failure};

/// Columns of a comment.
const COLUMNS: usize = 96;

const HEAD: &str = "\
# The configuration of frazil serve: frazil serve --config FILE
#
# Every key is shown with its default, or with a sample where it has none; take the # away to set it.
# Flags count for more than FRAZIL_... variables, and those for more than this file.
# Keys marked ## conflict with another key. Check it: frazil config check --config FILE";

pub(super) fn run(_: &ConfigExampleArgs) -> Result<(), Failure> {
    let mut data = Data::new();
    data.text(HEAD)?;
    let command = settings_command();
    let mut section = "";
    for key in KEYS {
        if section != key.section {
            data.text(format_args!("\n[{}]", key.section))?;
            section = key.section;
        }
        let arg = command.get_arguments().find(|arg| arg.get_id() == key.argument);
        for line in arg.into_iter().flat_map(|arg| comment(key, arg)) {
            data.text(format_args!("{line}"))?;
        }
    }
    data.flush()
}

/// The lines of a key: what it means, its flag and variable, its value.
fn comment(key: &Key, arg: &Arg) -> Vec<String> {
    let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
    let flag = arg.get_long().unwrap_or_default();
    let variable = arg.get_env().map(|name| name.to_string_lossy()).unwrap_or_default();
    let words = format!("{}. (--{flag}, {variable})", help.trim_end_matches('.'));
    let defaults = arg.get_default_values().iter();
    let defaults: Vec<String> = defaults.map(|text| text.to_string_lossy().into_owned()).collect();
    let samples =
        || key.sample.iter().flat_map(|text| text.split(',')).map(str::to_owned).collect();
    let texts = if defaults.is_empty() { samples() } else { defaults };
    let mark = if excludes_another(key) { "##" } else { "#" };
    let value = format!("{mark} {} = {}", key.name, toml_text::toml(key.kind, &texts));
    let lines = wrapped(&words).into_iter().map(|line| format!("#   {line}"));
    lines.chain(iter::once(value)).collect()
}

/// A fixed worker stands instead of a store.
fn excludes_another(key: &Key) -> bool {
    key.argument == "worker"
}

fn wrapped(words: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in words.split_whitespace() {
        let line = lines.last_mut().expect("there is always a line");
        match line.len() + 1 + word.len() <= COLUMNS {
            true if line.is_empty() => line.push_str(word),
            true => {
                line.push(' ');
                line.push_str(word);
            }
            false => lines.push(word.to_owned()),
        }
    }
    lines
}
