//! `frazil help`: everything about a command or a topic.

mod topics;

use std::fmt::Write;

use clap::{Command, CommandFactory};
use frazil_id::PRESETS;

use crate::args::{Args, HelpArgs};
use crate::output::{Data, Failure};

pub(crate) fn run(args: &HelpArgs) -> Result<(), Failure> {
    let text = match args.words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["stores"] => topics::STORES.to_owned(),
        ["layouts"] => layouts(),
        ref words => of_command(words)?,
    };
    let mut data = Data::new();
    data.text(text.trim_end())?;
    data.flush()
}

fn layouts() -> String {
    let mut text = topics::LAYOUTS.to_owned();
    for (name, layout) in PRESETS {
        // A string has room.
        let _ = write!(text, "\n  {name:<10} {layout}");
    }
    text
}

fn of_command(words: &[&str]) -> Result<String, Failure> {
    let mut root = Args::command();
    root.build();
    let mut command = &mut root;
    for word in words {
        let known = names(command);
        command = command.find_subcommand_mut(word).ok_or_else(|| {
            Failure::usage(format_args!("there is no help about {word:?}; there is about {known}"))
        })?;
    }
    Ok(command.render_long_help().to_string())
}

fn names(command: &Command) -> String {
    let commands = command.get_subcommands().filter(|command| !command.is_hide_set());
    let topics = if command.get_name() == "frazil" { "stores, layouts, " } else { "" };
    let names: Vec<_> = commands.map(Command::get_name).collect();
    format!("{topics}{}", names.join(", "))
}
