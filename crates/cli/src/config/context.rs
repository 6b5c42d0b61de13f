//! The layer of a context: what a command line and its environment leave open about where a cluster is.
//!
//! As with a server's configuration, what a context says becomes the *default* of the arguments that say the same,
//! so that there is one parser and one meaning for each value. `frazil help context` has the order in which
//! places count.

use clap::builder::Resettable;
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command};

use super::layers::misused;
use crate::contexts::{self, Context};
use crate::output::Failure;
use crate::remote;

/// Arguments of `frazil next` whose variables do not count beside `--context`.
pub(super) const PLACES: [&str; 4] = ["server", "store", "namespace", "worker"];

/// A server, and what it takes to ask it.
const SERVER: &[&str] = &["server", "key_file", "ca", "cert", "cert_key"];
/// A store and a space in it.
const STORE: &[&str] = &["store", "namespace"];
/// A store, and what it takes to ask the nodes that it names.
const NODES: &[&str] = &["store", "namespace", "key_file", "ca", "cert", "cert_key"];

/// Which part of a context a command is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// The server, or else the store.
    Either,
    Store,
    /// Nodes, which are found in the store. Not the server: it may be any of them.
    Nodes,
    /// The store, but only if the command line names the context: what is done there is a demonstration.
    StoreIfTyped,
}

impl Part {
    fn of(command: &[&str]) -> Option<Self> {
        match command {
            ["next"] => Some(Self::Either),
            ["workers", "drain" | "rotate" | "release"] => Some(Self::Nodes),
            ["jobs", "demo"] => Some(Self::StoreIfTyped),
            ["workers" | "store" | "key" | "elect" | "jobs", ..] => Some(Self::Store),
            _ => None,
        }
    }

    /// The arguments that are taken from a context. Where the command line or a variable names the server, the
    /// context's key is not among them; where one names the store, the context's namespace is not.
    fn taken(self, given: &TypedArguments<'_>, context: &Context) -> &'static [&'static str] {
        match self {
            _ if given.any(&["store"]) => &[],
            Self::Store | Self::StoreIfTyped => STORE,
            Self::Nodes if given.any(&["server"]) => &[],
            Self::Nodes => NODES,
            Self::Either if given.any(&["server", "worker"]) => &[],
            Self::Either if context.server.is_none() => STORE,
            Self::Either if given.typed("workers") || given.typed("namespace") => STORE,
            Self::Either => SERVER,
        }
    }
}

/// Puts a context under the command line: the same arguments, with what was left open about the cluster.
pub(super) fn under(command: Command, matches: ArgMatches) -> Result<ArgMatches, Failure> {
    let (mut path, mut leaf) = (Vec::new(), &matches);
    while let Some((name, inner)) = leaf.subcommand() {
        path.push(name);
        leaf = inner;
    }
    let Some(part) = Part::of(&path) else { return Ok(matches) };
    let given = TypedArguments { leaf, is_context_typed: is_typed(leaf, "context") };
    let Some((name, context)) = chosen(part, &given)? else { return Ok(matches) };
    let taken = part.taken(&given, &context);
    if given.is_context_typed && taken.contains(&"store") && context.store.is_none() {
        return Err(Failure::usage(format_args!(
            "the context {name} names no store: name one with --store, or give it one with \
             frazil context add --replace"
        )));
    }
    let is_open = |argument: &str| taken.contains(&argument) && !given.any(&[argument]);
    let values = context.values().into_iter().filter(|(argument, _)| is_open(argument));
    let values: Vec<_> = values.filter_map(|(name, value)| Some((name, value?))).collect();
    let change = |arg: Arg| {
        let name = arg.get_id().as_str();
        let said = values.iter().find(|(argument, _)| *argument == name);
        match said.map(|(_, value)| (*value).to_owned()) {
            Some(value) => arg.env(Resettable::Reset).default_value(value),
            None if given.is_context_typed && (SERVER.contains(&name) || STORE.contains(&name)) => {
                arg.env(Resettable::Reset)
            }
            None => arg,
        }
    };
    if given.is_context_typed {
        remote::ignore_key_variable();
    }
    let command = at(command, &path, &change);
    command.try_get_matches().map_err(|error| misused(&error))
}

/// The context that counts, with its name; none if nothing can be taken from one.
fn chosen(part: Part, given: &TypedArguments<'_>) -> Result<Option<(String, Context)>, Failure> {
    let is_needed = !part.taken(given, &Context::default()).is_empty();
    let named = given.leaf.get_one::<String>("context").filter(|name| !name.is_empty());
    if !given.is_context_typed && (!is_needed || part == Part::StoreIfTyped) {
        return Ok(None);
    }
    let known = contexts::load()?;
    let name = match named {
        Some(name) => name.as_str(),
        None if given.is_context_typed => return Err(Failure::usage("--context needs a name")),
        None => match known.current() {
            Some(name) => name,
            None => return Ok(None),
        },
    };
    Ok(Some((name.to_owned(), known.find(name)?.clone())))
}

/// The command with something changed about the arguments of one of its subcommands.
fn at(command: Command, path: &[&str], change: &impl Fn(Arg) -> Arg) -> Command {
    match path {
        [] => command.mut_args(change),
        [first, rest @ ..] => command.mut_subcommand(first, |inner| at(inner, rest, change)),
    }
}

/// What the command line says, and the environment where that counts.
struct TypedArguments<'a> {
    leaf: &'a ArgMatches,
    is_context_typed: bool,
}

impl TypedArguments<'_> {
    fn any(&self, arguments: &[&str]) -> bool {
        arguments.iter().any(|argument| self.typed(argument) || self.set(argument))
    }

    fn typed(&self, argument: &str) -> bool {
        is_typed(self.leaf, argument)
    }

    /// Whether a variable says it. An empty one says nothing, and `--context` counts for more.
    fn set(&self, argument: &str) -> bool {
        let variable = || self.leaf.value_source(argument) == Some(ValueSource::EnvVariable);
        let is_said = || {
            self.leaf.get_raw(argument).is_some_and(|mut said| said.any(|text| !text.is_empty()))
        };
        let has_key = || std::env::var_os("FRAZIL_KEY").is_some_and(|key| !key.is_empty());
        !self.is_context_typed
            && ((argument == "key_file" && has_key()) || (variable() && is_said()))
    }
}

fn is_typed(leaf: &ArgMatches, argument: &str) -> bool {
    leaf.value_source(argument) == Some(ValueSource::CommandLine)
}
