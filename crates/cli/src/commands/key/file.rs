//! The file of keys, changed without losing what people wrote into it.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use frazil_server::keys::{self, KeyEntry};
use toml_edit::{Array, ArrayOfTables, DocumentMut, Item, Table, value};

use super::word;
use crate::output::{Exit, Failure};

/// For its owner alone.
const MODE: u32 = 0o600;

pub(super) struct KeyFile {
    path: PathBuf,
    document: DocumentMut,
    mode: u32,
}

impl KeyFile {
    /// An existing one, which makes sense.
    pub(super) fn open(path: &Path) -> Result<Self, Failure> {
        keys::read(path).map_err(Failure::usage)?;
        let text = fs::read_to_string(path).map_err(|error| unreadable(path, &error))?;
        let document = text.parse().map_err(Failure::usage)?;
        let mode = fs::metadata(path).map_or(MODE, |metadata| metadata.permissions().mode());
        Ok(Self { path: path.to_owned(), document, mode: mode & 0o7777 })
    }

    /// The same, or an empty one if there is none.
    pub(super) fn open_or_new(path: &Path) -> Result<Self, Failure> {
        match fs::metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let document = DocumentMut::new();
                Ok(Self { path: path.to_owned(), document, mode: MODE })
            }
            _ => Self::open(path),
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn entries(&self) -> Result<Vec<KeyEntry>, Failure> {
        keys::parse(&self.document.to_string()).map_err(Failure::usage)
    }

    pub(super) fn add(&mut self, entry: &KeyEntry) {
        let tables =
            self.document.entry("key").or_insert(Item::ArrayOfTables(ArrayOfTables::new()));
        if let Some(tables) = tables.as_array_of_tables_mut() {
            tables.push(table(entry));
        }
    }

    pub(super) fn remove(&mut self, id: &str) {
        if let Some(tables) = self.tables() {
            tables.retain(|table| id_of(table) != Some(id));
        }
    }

    pub(super) fn expire(&mut self, id: &str, when: &str) {
        let tables = self.tables().into_iter().flat_map(ArrayOfTables::iter_mut);
        for table in tables.filter(|table| id_of(table) == Some(id)) {
            table["expires"] = value(when);
        }
    }

    fn tables(&mut self) -> Option<&mut ArrayOfTables> {
        self.document.get_mut("key")?.as_array_of_tables_mut()
    }

    /// Replaces the file whole: a server that reads it meanwhile sees the old one or the new one.
    pub(super) fn save(&self) -> Result<(), Failure> {
        let mut name = self.path.clone().into_os_string();
        name.push(format!(".{}.new", std::process::id()));
        let new = PathBuf::from(name);
        let write = || -> io::Result<()> {
            let mut file = OpenOptions::new().write(true).create_new(true).mode(MODE).open(&new)?;
            file.set_permissions(fs::Permissions::from_mode(self.mode))?;
            file.write_all(self.document.to_string().as_bytes())?;
            file.sync_all()?;
            fs::rename(&new, &self.path)
        };
        write().map_err(|error| {
            // Nothing of it is of use.
            let _ = fs::remove_file(&new);
            let path = self.path.display();
            Failure::new(Exit::Unavailable, format_args!("{path} cannot be written: {error}"))
        })
    }
}

/// An entry as the file has it.
pub(super) fn text_of(entry: &KeyEntry) -> String {
    let mut document = DocumentMut::new();
    let mut tables = ArrayOfTables::new();
    tables.push(table(entry));
    document.insert("key", Item::ArrayOfTables(tables));
    document.to_string()
}

fn table(entry: &KeyEntry) -> Table {
    let mut table = Table::new();
    table["id"] = value(&entry.id);
    table["name"] = value(&entry.name);
    table["roles"] = value(entry.roles.iter().map(|role| word(*role)).collect::<Array>());
    if let Some(scopes) = &entry.scopes {
        table["scopes"] = value(scopes.iter().collect::<Array>());
    }
    if let Some(rate) = entry.ids_per_second {
        table["ids_per_second"] = value(i64::from(rate.get()));
    }
    if let Some(expires) = &entry.expires {
        table["expires"] = value(expires);
    }
    table["sha256"] = value(&entry.sha256);
    table
}

fn id_of(table: &Table) -> Option<&str> {
    table.get("id")?.as_str()
}

fn unreadable(path: &Path, error: &io::Error) -> Failure {
    Failure::usage(format_args!("{} cannot be read: {error}", path.display()))
}
