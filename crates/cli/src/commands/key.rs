//! `frazil key`: the API keys of a server.

mod file;

use frazil::coord::time::unix_ms;
use frazil_server::keys::{self, KeyEntry, NewKey, Role};
use serde::Serialize;

use self::file::KeyFile;
use crate::args::{KeyCommand, KeyLsArgs, KeyNewArgs, KeyRevokeArgs, KeyRotateArgs, RoleArg};
use crate::output::{Data, Exit, Failure, say};
use crate::words::instant;

pub(crate) fn run(command: &KeyCommand) -> Result<(), Failure> {
    match command {
        KeyCommand::New(args) => new(args),
        KeyCommand::Ls(args) => ls(args),
        KeyCommand::Rotate(args) => rotate(args),
        KeyCommand::Revoke(args) => revoke(args),
    }
}

/// What is printed of a new key.
#[derive(Serialize)]
struct Made<'a> {
    key: &'a str,
    #[serde(flatten)]
    entry: &'a KeyEntry,
}

fn new(args: &KeyNewArgs) -> Result<(), Failure> {
    let mut roles: Vec<Role> = args.roles.iter().map(|role| (*role).into()).collect();
    roles.dedup();
    let key = mint()?;
    let mut entry = KeyEntry::of(&key, &args.name, roles);
    entry.scopes = Some(args.scopes.clone()).filter(|scopes| !scopes.is_empty());
    entry.ids_per_second = args.ids_per_second;
    entry.expires = end(args.expires)?;
    entry.check().map_err(Failure::usage)?;
    match &args.file {
        Some(path) => {
            let mut file = KeyFile::open_or_new(path)?;
            file.add(&entry);
            file.save()?;
            say(format_args!("{} was added to {}; {RELOAD}", entry.id, path.display()));
        }
        None => say(format_args!("add this to the file of keys:\n\n{}", file::text_of(&entry))),
    }
    print(&key, &entry, args.json)
}

/// When a key ends, which must be later than now.
fn end(expires: Option<i64>) -> Result<Option<String>, Failure> {
    let Some(at) = expires else { return Ok(None) };
    let at = u64::try_from(at).unwrap_or(0);
    if at <= unix_ms() {
        let at = instant(at);
        return Err(Failure::usage(format_args!("a key that ended at {at} opens nothing")));
    }
    Ok(Some(instant(at)))
}

/// What makes a running server see a change.
const RELOAD: &str = "a running server sees it after kill -HUP";

fn print(key: &NewKey, entry: &KeyEntry, json: bool) -> Result<(), Failure> {
    let mut data = Data::new();
    match json {
        true => data.json(&Made { key: key.text(), entry })?,
        false => data.text(key.text())?,
    }
    data.flush()
}

fn ls(args: &KeyLsArgs) -> Result<(), Failure> {
    let entries = keys::read(&args.file.path).map_err(Failure::usage)?;
    let mut data = Data::new();
    if args.json {
        for entry in &entries {
            data.json(entry)?;
        }
        return data.flush();
    }
    let mut table = comfy_table::Table::new();
    table.load_preset(comfy_table::presets::NOTHING);
    table.set_header(["id", "name", "roles", "scopes", "ids/s", "expires"]);
    let any = || "-".to_owned();
    for entry in &entries {
        let roles: Vec<&str> = entry.roles.iter().map(|role| word(*role)).collect();
        table.add_row([
            entry.id.clone(),
            entry.name.clone(),
            roles.join(","),
            entry.scopes.as_ref().map_or_else(any, |scopes| scopes.join(",")),
            entry.ids_per_second.map_or_else(any, |rate| rate.to_string()),
            expiry(entry),
        ]);
    }
    data.text(table)?;
    data.flush()
}

fn expiry(entry: &KeyEntry) -> String {
    match (&entry.expires, entry.expires_ms()) {
        (Some(text), Some(at)) if at <= unix_ms() => format!("{text} (expired)"),
        (Some(text), _) => text.clone(),
        (None, _) => "-".to_owned(),
    }
}

fn rotate(args: &KeyRotateArgs) -> Result<(), Failure> {
    let mut file = KeyFile::open(&args.file.path)?;
    let old = find(&file, &args.id)?;
    if let (Some(at), None) = (&old.expires, args.expires) {
        let why =
            format_args!("the old key ends at {at}: say with --expires when the new one does");
        return Err(Failure::usage(why));
    }
    let expires = end(args.expires)?;
    let key = mint()?;
    let (id, sha256) = (key.id().to_owned(), key.sha256());
    let entry = KeyEntry { id, sha256, expires, ..old.clone() };
    let grace = u64::try_from(args.grace.as_millis()).unwrap_or(u64::MAX);
    let end = unix_ms().saturating_add(grace);
    let end = old.expires_ms().map_or(end, |already| already.min(end));
    file.expire(&old.id, &instant(end));
    file.add(&entry);
    file.save()?;
    say(format_args!(
        "{} ends at {}; {} takes its place; {RELOAD}",
        old.id,
        instant(end),
        entry.id
    ));
    print(&key, &entry, args.json)
}

fn revoke(args: &KeyRevokeArgs) -> Result<(), Failure> {
    let mut file = KeyFile::open(&args.file.path)?;
    let entry = find(&file, &args.id)?;
    file.remove(&entry.id);
    file.save()?;
    say(format_args!("{} of {} was removed; {RELOAD}", entry.id, entry.name));
    if args.json {
        let mut data = Data::new();
        data.json(&entry)?;
        data.flush()?;
    }
    Ok(())
}

/// The entry of an id. Whoever gives the whole key means its id, and must not see it repeated.
fn find(file: &KeyFile, id: &str) -> Result<KeyEntry, Failure> {
    let id = id.strip_prefix("frz_").map_or(id, |rest| rest.split('_').next().unwrap_or_default());
    let found = file.entries()?.into_iter().find(|entry| entry.id == id);
    found.ok_or_else(|| {
        let path = file.path().display();
        Failure::new(
            Exit::No,
            format_args!("{path} has no key {id:?}: see frazil key ls --file {path}"),
        )
    })
}

fn mint() -> Result<NewKey, Failure> {
    NewKey::mint().map_err(|error| {
        Failure::new(Exit::Unavailable, format_args!("no key can be made: {error}"))
    })
}

const fn word(role: Role) -> &'static str {
    match role {
        Role::Ids => "ids",
        Role::Read => "read",
        Role::Admin => "admin",
    }
}

impl From<RoleArg> for Role {
    fn from(role: RoleArg) -> Self {
        match role {
            RoleArg::Ids => Self::Ids,
            RoleArg::Read => Self::Read,
            RoleArg::Admin => Self::Admin,
        }
    }
}
