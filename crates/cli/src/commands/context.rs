//! `frazil context`: clusters by name.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use comfy_table::{Table, presets};
use serde::Serialize;

use crate::args::{ContextAddArgs, ContextCommand, ContextLsArgs, ContextUseArgs};
use crate::contexts::{self, Context, Document};
use crate::locked_file::LockedFile;
use crate::output::{Data, Exit, Failure, say};

/// The directory of contexts is for its owner alone: who can write there chooses whom keys are sent to.
const DIRECTORY_MODE: u32 = 0o700;

pub(crate) fn run(command: &ContextCommand) -> Result<(), Failure> {
    match command {
        ContextCommand::Add(args) => add(args),
        ContextCommand::Use(args) => select(args),
        ContextCommand::Ls(args) => ls(args),
        ContextCommand::Rm(args) => rm(&args.name),
    }
}

fn add(args: &ContextAddArgs) -> Result<(), Failure> {
    let file = |path: &Option<PathBuf>| path.as_deref().map(whole).transpose();
    let context = Context {
        server: args.server.clone(),
        store: args.store.clone(),
        namespace: args.namespace.clone(),
        key_file: file(&args.key_file)?,
        ca: file(&args.ca)?,
        cert: file(&args.cert)?,
        cert_key: file(&args.cert_key)?,
    };
    let name = &args.name;
    change(|document| {
        if document.all().contains_key(name) && !args.replace {
            return Err(Failure::usage(format_args!(
                "there is a context {name} already: --replace puts another in its place"
            )));
        }
        document.put(name, &context)?;
        if args.select { document.select(Some(name)) } else { Ok(()) }
    })?;
    match args.select {
        true => say(format_args!("{name} is known, and in use")),
        false => say(format_args!(
            "{name} is known: --context {name} asks it, and `frazil context use {name}` makes that the default"
        )),
    }
    Ok(())
}

fn select(args: &ContextUseArgs) -> Result<(), Failure> {
    change(|document| document.select(args.name.as_deref()))?;
    match &args.name {
        Some(name) => say(format_args!("{name} is in use")),
        None => say("no context is in use"),
    }
    Ok(())
}

fn rm(name: &str) -> Result<(), Failure> {
    let mut was_current = false;
    change(|document| {
        was_current = document.current() == Some(name);
        document.remove(name)
    })?;
    let rest = if was_current { ", and no context is in use now" } else { "" };
    say(format_args!("{name} is removed{rest}"));
    Ok(())
}

/// A context as a user sees it.
#[derive(Debug, Serialize)]
struct Listed<'a> {
    context: &'a str,
    current: bool,
    #[serde(flatten)]
    says: &'a Context,
}

fn ls(args: &ContextLsArgs) -> Result<(), Failure> {
    let document = contexts::load()?;
    let mut data = Data::new();
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    table.set_header(["", "CONTEXT", "SERVER", "STORE", "NAMESPACE"]);
    for (name, context) in document.all() {
        let current = document.current() == Some(name);
        if args.json {
            data.json(&Listed { context: name, current, says: context })?;
        }
        let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "-".to_owned());
        let Context { server, store, namespace, .. } = context;
        let mark = if current { "*" } else { " " };
        table.add_row([mark.to_owned(), name.clone(), text(server), text(store), text(namespace)]);
    }
    if !args.json {
        data.text(table)?;
        if document.all().is_empty() {
            say("there is no context yet: `frazil context add` makes one");
        }
    }
    data.flush()
}

/// Changes the file, which is created if it is not there.
fn change(edit: impl FnOnce(&mut Document) -> Result<(), Failure>) -> Result<(), Failure> {
    let path = contexts::path()?;
    let directory = path.parent().unwrap_or(Path::new("/"));
    let made = DirBuilder::new().recursive(true).mode(DIRECTORY_MODE).create(directory);
    made.map_err(|error| {
        let shown = directory.display();
        Failure::new(Exit::Unavailable, format_args!("{shown} cannot be created: {error}"))
    })?;
    let file = LockedFile::open_or_new(&path)?;
    let mut document = Document::parse(&path, &file.read()?)?;
    edit(&mut document)?;
    file.replace(&document.text())
}

/// The name of a file as it is meant from every directory.
fn whole(path: &Path) -> Result<String, Failure> {
    let whole = std::path::absolute(path)
        .map_err(|error| Failure::usage(format_args!("{path:?} cannot be named: {error}")))?;
    let text = whole.into_os_string().into_string();
    text.map_err(|path| Failure::usage(format_args!("{path:?} is not UTF-8")))
}
