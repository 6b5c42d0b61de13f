//! `frazil key`: the API keys of a server.

mod document;
mod list;

use frazil::coord::internal::time::unix_ms;
use frazil_server::keys::{KeyEntry, KeySource, NewKey, Role};
use serde::Serialize;

use self::document::text_of;
use self::list::Absent;
use crate::args::{
    KeyCommand, KeyLsArgs, KeyNewArgs, KeyRevokeArgs, KeyRotateArgs, PlaceArg, RoleArg,
};
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
    /// None where only a certificate stands for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<&'a str>,
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
    entry.ids_per_second_cluster = args.ids_per_second_cluster;
    entry.expires = end(args.expires)?;
    entry.certificate_subject.clone_from(&args.certificate_subject);
    entry.certificate_san.clone_from(&args.certificate_san);
    let is_certified = args.certificate_subject.is_some() || args.certificate_san.is_some();
    let text = (!is_certified || args.with_text).then(|| key.text());
    if text.is_none() {
        entry.sha256.clear();
    }
    entry.check().map_err(Failure::usage)?;
    match &args.keys {
        Some(source) => {
            list::change(source, &args.store, Absent::Create, |document| {
                document.add(&entry);
                document.check()
            })?;
            let (to, reach) = (shown(source, &args.store.place), list::reach(source));
            say(format_args!("{} was added to {to}; {reach}", entry.id));
        }
        None => say(format_args!("add this to the file of keys:\n\n{}", text_of(&entry))),
    }
    print(text, &entry, args.json)
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

/// What a list is called.
fn shown(source: &KeySource, place: &PlaceArg) -> String {
    match source {
        KeySource::File(path) => path.display().to_string(),
        KeySource::Store => format!("the store, namespace {}", place.namespace),
    }
}

fn print(key: Option<&str>, entry: &KeyEntry, json: bool) -> Result<(), Failure> {
    let mut data = Data::new();
    match (json, key) {
        (true, key) => data.json(&Made { key, entry })?,
        (false, Some(key)) => data.text(key)?,
        (false, None) => say("a certificate stands for it: there is no text to give out"),
    }
    data.flush()
}

fn ls(args: &KeyLsArgs) -> Result<(), Failure> {
    let entries = list::read(&args.list.keys, &args.place)?;
    let mut data = Data::new();
    if args.json {
        for entry in &entries {
            data.json(entry)?;
        }
        return data.flush();
    }
    let mut table = comfy_table::Table::new();
    table.load_preset(comfy_table::presets::NOTHING);
    table.set_header(["ID", "NAME", "ROLES", "SCOPES", "IDS/S", "EXPIRES", "CERTIFICATE"]);
    let any = || "-".to_owned();
    for entry in &entries {
        let roles: Vec<&str> = entry.roles.iter().map(|role| role.word()).collect();
        table.add_row([
            entry.id.clone(),
            entry.name.clone(),
            roles.join(","),
            entry.scopes.as_ref().map_or_else(any, |scopes| scopes.join(",")),
            quota(entry).unwrap_or_else(any),
            expiry(entry),
            certificate(entry).unwrap_or_else(any),
        ]);
    }
    data.text(table)?;
    data.flush()
}

fn quota(entry: &KeyEntry) -> Option<String> {
    let shared = entry.ids_per_second_cluster.map(|rate| format!("{rate} (cluster)"));
    shared.or_else(|| entry.ids_per_second.map(|rate| rate.to_string()))
}

fn certificate(entry: &KeyEntry) -> Option<String> {
    let names = [&entry.certificate_subject, &entry.certificate_san];
    let names: Vec<&str> = names.into_iter().filter_map(|name| name.as_deref()).collect();
    (!names.is_empty()).then(|| names.join(" or "))
}

fn expiry(entry: &KeyEntry) -> String {
    match (&entry.expires, entry.expires_ms()) {
        (Some(text), Some(at)) if at <= unix_ms() => format!("{text} (expired)"),
        (Some(text), _) => text.clone(),
        (None, _) => "-".to_owned(),
    }
}

fn rotate(args: &KeyRotateArgs) -> Result<(), Failure> {
    let expires = end(args.expires)?;
    let key = mint()?;
    let source = &args.list.keys;
    let (old, new) = list::change(source, &args.store, Absent::Refuse, |document| {
        let old = document.find(&args.id)?;
        if old.sha256.is_empty() {
            let why =
                format_args!("{} has no text to replace: a certificate stands for it", old.id);
            return Err(Failure::usage(why));
        }
        if let (Some(at), None) = (&old.expires, args.expires) {
            let why =
                format_args!("the old key ends at {at}: say with --expires when the new one does");
            return Err(Failure::usage(why));
        }
        let mut new = old.clone();
        new.id = key.id().to_owned();
        new.sha256 = key.sha256();
        new.expires.clone_from(&expires);
        let grace = u64::try_from(args.grace.as_millis()).unwrap_or(u64::MAX);
        let end = unix_ms().saturating_add(grace);
        let end = old.expires_ms().map_or(end, |already| already.min(end));
        let mut old = old;
        old.expires = Some(instant(end));
        document.expire(&old.id, &instant(end));
        document.add(&new);
        Ok((old, new))
    })?;
    let (end, reach) = (old.expires.unwrap_or_default(), list::reach(source));
    say(format_args!("{} ends at {end}; {} takes its place; {reach}", old.id, new.id));
    print(Some(key.text()), &new, args.json)
}

fn revoke(args: &KeyRevokeArgs) -> Result<(), Failure> {
    let source = &args.list.keys;
    let entry = list::change(source, &args.store, Absent::Refuse, |document| {
        let entry = document.find(&args.id)?;
        document.remove(&entry.id);
        Ok(entry)
    })?;
    say(format_args!("{} of {} was removed; {}", entry.id, entry.name, list::reach(source)));
    if args.json {
        let mut data = Data::new();
        data.json(&entry)?;
        data.flush()?;
    }
    Ok(())
}

fn mint() -> Result<NewKey, Failure> {
    NewKey::mint().map_err(|error| {
        Failure::new(Exit::Unavailable, format_args!("no key can be made: {error}"))
    })
}

impl From<RoleArg> for Role {
    fn from(role: RoleArg) -> Self {
        match role {
            RoleArg::Ids => Self::Ids,
            RoleArg::Peer => Self::Peer,
            RoleArg::Read => Self::Read,
            RoleArg::Admin => Self::Admin,
        }
    }
}
