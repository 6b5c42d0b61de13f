//! The layers of the configuration, from defaults over file and environment to flags.

use std::collections::HashMap;
use std::error::Error;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use clap::builder::Resettable;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args as _, Command, CommandFactory, FromArgMatches};

use super::document::{self, Document};
use super::key::{KEYS, Key, Kind, key_at, key_of};
use super::problem::{Origin, Problem};
use super::{Wrong, context, variables};
use crate::args::{Args, CONFIG_VARIABLE, ServeArgs};
use crate::output::{Exit, Failure, complain};

/// What `--dev` decides. Flags count for more.
const DEV: [(&str, &str); 4] = [
    ("listen.http", "127.0.0.1:0"),
    ("listen.grpc", "127.0.0.1:0"),
    ("listen.resp", "127.0.0.1:0"),
    ("drain.delay", "0s"),
];
/// What `--dev` does not take from the environment or the file.
const NOT_IN_DEV: [&str; 4] = ["listen.admin", "store.url", "store.password_file", "node.worker"];

/// The values in effect, each with its origin.
pub(crate) struct Settings {
    /// As the command line has them when all layers are in.
    pub(crate) args: ServeArgs,
    pub(crate) values: Vec<Setting>,
}

/// A value in effect. It may hold a password: it is shown by `config show` alone, which knows.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Setting {
    pub(crate) key: &'static Key,
    /// As they would be typed; nothing if it is not set.
    pub(crate) texts: Option<Vec<String>>,
    pub(crate) origin: Origin,
}

/// Settings with what is wrong with single values; those are left out.
pub(super) struct Loaded {
    pub(super) settings: Settings,
    pub(super) problems: Vec<Problem>,
    /// Whether the file could be understood.
    pub(super) is_whole: bool,
}

impl Settings {
    pub(crate) fn setting(&self, path: &str) -> &Setting {
        let key = key_at(path);
        let found = self.values.iter().find(|setting| setting.key == key);
        found.expect("every key has a setting")
    }

    /// A default that depends on another value: one peer has no more connections than all.
    fn follow(&mut self) {
        let all = self.args.limits.max_connections;
        let of_one = &mut self.args.limits.max_connections_per_peer;
        let key = key_at("limits.max_connections_per_peer");
        for setting in self.values.iter_mut().filter(|setting| setting.key == key) {
            if setting.origin == Origin::Default && *of_one > all {
                *of_one = all;
                setting.texts = Some(vec![all.to_string()]);
            }
        }
    }
}

/// Parses the command line, and refuses variables that are not known. The values of settings in the environment
/// are left to [`load`], which reports everything that is wrong with them, and not the first thing alone.
pub(crate) fn parse_command_line() -> Result<Args, Failure> {
    crate::log::look_for_json(std::env::args_os());
    let without = |arg: Arg| arg.env(Resettable::Reset);
    let mut command = with_settings(without);
    for (flag, variables) in [("--server", &LEASING[..]), ("--context", &context::PLACES)] {
        if is_typed(flag, std::env::args_os()) {
            command = command.mut_subcommand("next", |next| {
                next.mut_args(|arg| match variables.contains(&arg.get_id().as_str()) {
                    true => without(arg),
                    false => arg,
                })
            });
        }
    }
    let matches = match command.clone().try_get_matches() {
        Ok(matches) => context::under(command, matches)?,
        // The help names the variables.
        Err(error) if error.use_stderr() => return Err(misused(&error)),
        Err(_) => with_short_help(Args::command()).get_matches(),
    };
    let unknown = variables::unknown(&Args::command());
    if !unknown.is_empty() {
        unknown.iter().for_each(|why| complain(why));
        return Err(Failure::Reported(Exit::Usage));
    }
    Args::from_arg_matches(&matches).map_err(|error| misused(&error))
}

/// Arguments of `frazil next` that do not go with `--server`. A flag counts for more than their variables, which are
/// there for the other commands.
const LEASING: [&str; 3] = ["store", "worker", "workers"];

fn is_typed(flag: &str, arguments: impl Iterator<Item = OsString>) -> bool {
    arguments.map(OsString::into_encoded_bytes).any(|argument| {
        let rest = argument.strip_prefix(flag.as_bytes());
        rest.is_some_and(|rest| rest.is_empty() || rest[0] == b'=')
    })
}

/// What the parser says of a command line, in its own words and colours.
pub(super) fn misused(error: &clap::Error) -> Failure {
    if crate::log::is_json() {
        let text = error.render().to_string();
        return Failure::usage(text.trim_end().trim_start_matches("error: "));
    }
    // Nobody is left to tell when stderr is gone.
    let _ = error.print();
    Failure::Reported(Exit::Usage)
}

/// The command line with something changed about the arguments that are settings.
fn with_settings(change: impl Fn(Arg) -> Arg + Copy) -> Command {
    let change_setting = move |arg: Arg| if is_setting(&arg) { change(arg) } else { arg };
    let change = move |command: Command| command.mut_args(change_setting);
    let config =
        |config: Command| config.mut_subcommand("check", change).mut_subcommand("show", change);
    with_short_help(Args::command())
        .mut_subcommand("serve", change)
        .mut_subcommand("doctor", change)
        .mut_subcommand("config", config)
}

/// The help of a server fits on two screens: a line for each setting, without its variable. `frazil help serve` has the
/// rest.
fn with_short_help(command: Command) -> Command {
    let help = || {
        let what = "Print help (see more with `frazil help serve`)";
        let help = Arg::new("help").short('h').long("help").action(ArgAction::HelpShort).help(what);
        // Not under the heading of the arguments before it.
        help.help_heading(Resettable::Reset)
    };
    command.mut_subcommand("serve", |serve| {
        serve.disable_help_flag(true).mut_args(|arg| arg.hide_env(true)).arg(help())
    })
}

/// Whether an argument is a server's, or names the file: a command may have others beside them.
fn is_setting(arg: &Arg) -> bool {
    let name = arg.get_id().as_str();
    name == "config" || key_of(name).is_some()
}

/// Puts the layers under the flags.
pub(super) fn load(flags: &ServeArgs) -> Result<Loaded, Wrong> {
    let document = match named_file(flags) {
        Some(path) => read(&path).map_err(Wrong::Unreadable)?,
        None => Document::default(),
    };
    let (command, values) = (bare_command(), HashMap::new());
    let mut layers = Layers { command, values, problems: document.problems };
    for entry in document.entries {
        layers.add(entry.key, entry.texts, Origin::File(entry.place));
    }
    for arg in settings_command().get_arguments() {
        if let (Some(key), Some(variable)) = (key_of(arg.get_id().as_str()), arg.get_env()) {
            layers.add_environment(key, variable);
        }
    }
    if flags.dev {
        layers.enter_dev();
    }
    let Layers { values, problems, .. } = layers;
    // It was parsed before with other defaults, and these were checked one by one.
    let settings = settings(&values).map_err(|error| Wrong::Unreadable(error.to_string()))?;
    Ok(Loaded { settings, problems, is_whole: !document.is_broken })
}

/// The file that is named: by the flag, else by the variable.
pub(crate) fn named_file(flags: &ServeArgs) -> Option<PathBuf> {
    let named = || std::env::var_os(CONFIG_VARIABLE).filter(|name| !name.is_empty());
    flags.config.clone().or_else(|| named().map(PathBuf::from))
}

fn read(path: &Path) -> Result<Document, String> {
    document::read(path).map(|text| document::parse(path, &text))
}

/// All arguments of a server.
pub(crate) fn settings_command() -> Command {
    ServeArgs::augment_args(Command::new("frazil"))
}

/// The same, but nothing is taken from the environment.
pub(super) fn bare_command() -> Command {
    settings_command().mut_args(|arg| arg.env(Resettable::Reset))
}

/// Texts as they would be typed, and who said them.
type Value = (Vec<String>, Origin);

struct Layers {
    command: Command,
    /// By the argument's name.
    values: HashMap<&'static str, Value>,
    problems: Vec<Problem>,
}

impl Layers {
    fn add(&mut self, key: &'static Key, texts: Vec<String>, origin: Origin) {
        let wrong = texts.iter().find_map(|text| check(&self.command, key, text).err());
        match wrong {
            Some(why) => self.problems.push(Problem::new(origin, key.to_string(), why)),
            None => {
                self.values.insert(key.argument, (texts, origin));
            }
        }
    }

    /// An empty variable sets nothing.
    fn add_environment(&mut self, key: &'static Key, name: &OsStr) {
        let Some(value) = std::env::var_os(name).filter(|value| !value.is_empty()) else { return };
        let origin = Origin::Environment(name.to_string_lossy().into_owned());
        match value.into_string() {
            Ok(text) => {
                let texts = match key.kind {
                    Kind::List => text.split(',').map(str::to_owned).collect(),
                    _ => vec![text],
                };
                self.add(key, texts, origin);
            }
            Err(_) => {
                self.problems.push(Problem::new(origin, key.to_string(), "is not UTF-8"));
            }
        }
    }

    fn enter_dev(&mut self) {
        for path in NOT_IN_DEV {
            self.values.remove(key_at(path).argument);
        }
        for (path, text) in DEV {
            let origin = Origin::Flag("--dev".to_owned());
            self.values.insert(key_at(path).argument, (vec![text.to_owned()], origin));
        }
    }
}

/// Asks the argument's own parser about a value: with a command line that has nothing else.
fn check(command: &Command, key: &Key, text: &str) -> Result<(), String> {
    if key.kind == Kind::Number && text.parse::<u64>().is_err() {
        return Err(format!("\"{text}\" does not fit: write a whole number"));
    }
    let typed = ["frazil".to_owned(), format!("{}={text}", flag(command, key))];
    let Err(error) = command.clone().try_get_matches_from(typed) else { return Ok(()) };
    if key.kind == Kind::Truth {
        return Err(format!("\"{text}\" does not fit: write true or false"));
    }
    let why = match (error.kind(), error.get(ContextKind::ValidValue)) {
        (_, Some(ContextValue::Strings(words))) if !words.is_empty() => {
            format!("write {}", words.join(" or "))
        }
        (ErrorKind::ValueValidation, _) => {
            error.source().map_or_else(String::new, ToString::to_string)
        }
        _ => "write something that is not empty".to_owned(),
    };
    Err(format!("\"{text}\" does not fit: {why}"))
}

/// Parses the command line of this process with the layers as its defaults.
fn settings(layers: &HashMap<&'static str, Value>) -> Result<Settings, clap::Error> {
    let command = with_settings(|arg| {
        let arg = arg.env(Resettable::Reset);
        match layers.get(arg.get_id().as_str()) {
            Some((texts, _)) => arg.default_values(texts.clone()),
            None => arg,
        }
    });
    let matches = command.try_get_matches_from(std::env::args_os())?;
    let mut leaf = &matches;
    while let Some((_, inner)) = leaf.subcommand() {
        leaf = inner;
    }
    let args = ServeArgs::from_arg_matches(leaf)?;
    let values = KEYS.iter().map(|key| setting(key, leaf, layers)).collect();
    let mut settings = Settings { args, values };
    settings.follow();
    Ok(settings)
}

fn setting(
    key: &'static Key,
    matches: &ArgMatches,
    layers: &HashMap<&'static str, Value>,
) -> Setting {
    let texts = matches.get_raw(key.argument).map(|texts| {
        texts.map(|text| text.to_string_lossy().into_owned()).collect::<Vec<String>>()
    });
    let origin = match (matches.value_source(key.argument), layers.get(key.argument)) {
        (Some(ValueSource::CommandLine), _) => Origin::Flag(flag(&bare_command(), key)),
        (_, Some((_, origin))) => origin.clone(),
        _ => Origin::Default,
    };
    Setting { key, texts, origin }
}

fn flag(command: &Command, key: &Key) -> String {
    let arg = command.get_arguments().find(|arg| arg.get_id() == key.argument);
    let long = arg.and_then(Arg::get_long).expect("every setting has a flag");
    format!("--{long}")
}
