//! Contexts: clusters by name, each with where its server and its store are, in one small file.
//!
//! Nothing secret is in the file: keys and passwords are named by the files that have them.

mod document;

use std::env;
use std::path::PathBuf;
use std::{fs, io};

use frazil_coord::{Namespace, Scheme, StoreUrl};
use serde::{Deserialize, Serialize};

pub(crate) use self::document::Document;
use crate::config::closest;
use crate::output::Failure;
use crate::remote;

/// The file's name in the configuration directory.
const FILE: &str = "contexts.toml";
/// The options of a store's URL that name files.
const FILE_OPTIONS: [&str; 5] = ["ca", "cert", "key", "password_file", "state"];
/// A name is typed often, and is a word in a shell.
const NAME_CHARS_MAX: usize = 64;

/// Where a cluster is, as the flags of the same names say it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Context {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) server: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) store: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) namespace: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) key_file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ca: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cert: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cert_key: Option<String>,
}

impl Context {
    /// What it says, by the names of the arguments that say the same.
    pub(crate) fn values(&self) -> [(&'static str, Option<&str>); 7] {
        [
            ("server", self.server.as_deref()),
            ("store", self.store.as_deref()),
            ("namespace", self.namespace.as_deref()),
            ("key_file", self.key_file.as_deref()),
            ("ca", self.ca.as_deref()),
            ("cert", self.cert.as_deref()),
            ("cert_key", self.cert_key.as_deref()),
        ]
    }

    /// What is wrong with it, without repeating what may hold a password.
    fn check(&self) -> Result<(), Failure> {
        if self.server.is_none() && self.store.is_none() {
            return Err(Failure::usage("a context names a server, a store, or both"));
        }
        if let Some(server) = &self.server {
            remote::check_address(server)?;
        }
        if let Some(store) = &self.store {
            let url: StoreUrl = store.parse().map_err(Failure::usage)?;
            if url.password.is_some() {
                return Err(Failure::usage(
                    "a context keeps no password: name a file that has it with ?password_file= in \
                     the URL of the store, or set FRAZIL_STORE_PASSWORD",
                ));
            }
            if url.scheme == Scheme::File && !url.path.starts_with('/') {
                return Err(Failure::usage(
                    "a context means the same in every directory: write file: with a path that \
                     begins with /",
                ));
            }
            let is_relative =
                |name: &&&str| url.option(name).is_some_and(|path| !path.starts_with('/'));
            if let Some(name) = FILE_OPTIONS.iter().find(is_relative) {
                return Err(Failure::usage(format_args!(
                    "a context means the same in every directory: write ?{name}= in the URL of the store with a \
                     path that begins with /"
                )));
            }
        }
        if let Some(namespace) = &self.namespace {
            namespace.parse::<Namespace>().map_err(Failure::usage)?;
        }
        match self.cert.is_some() == self.cert_key.is_some() {
            true => Ok(()),
            false => Err(Failure::usage("a certificate and its private key belong together")),
        }
    }
}

/// Where the file is, whether or not it is there.
pub(crate) fn path() -> Result<PathBuf, Failure> {
    let set = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let directory = set("XDG_CONFIG_HOME").or_else(|| set("HOME").map(|home| home.join(".config")));
    let directory = directory.ok_or_else(|| {
        Failure::usage("there is no directory for contexts: set XDG_CONFIG_HOME or HOME")
    })?;
    Ok(directory.join("frazil").join(FILE))
}

/// What the file says; nothing if there is none, or no place for one.
pub(crate) fn load() -> Result<Document, Failure> {
    let Ok(path) = path() else { return Ok(Document::default()) };
    match fs::read_to_string(&path) {
        Ok(text) => Document::parse(&path, &text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Document::default()),
        Err(error) => {
            Err(Failure::usage(format_args!("{} cannot be read: {error}", path.display())))
        }
    }
}

/// A name that can be typed and read.
pub(crate) fn check_name(name: &str) -> Result<(), Failure> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let starts_well = name.starts_with(|c: char| c.is_ascii_alphanumeric());
    match starts_well && name.len() <= NAME_CHARS_MAX && name.chars().all(is_plain) {
        true => Ok(()),
        false => Err(Failure::usage(format_args!(
            "a context's name has letters, digits, '-', '_' and '.', {NAME_CHARS_MAX} at the most, \
             and begins with a letter or a digit"
        ))),
    }
}

/// That there is no context of this name, and which may be meant.
fn unknown<'a>(name: &str, known: impl Iterator<Item = &'a str> + Clone) -> Failure {
    let advice = match (closest(name, known.clone()), known.count()) {
        (Some(near), _) => format!("did you mean {near}?"),
        (None, 0) => "there is none yet; `frazil context add` makes one".to_owned(),
        (None, _) => "`frazil context ls` shows those that there are".to_owned(),
    };
    Failure::usage(format_args!("there is no context {name:?}: {advice}"))
}
