//! The file of keys, changed without losing what people wrote into it.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use frazil_server::keys::{self, KeyEntry};
use toml_edit::{Array, ArrayOfTables, DocumentMut, Item, Table, value};

use super::word;
use crate::output::{Exit, Failure};

/// For its owner alone.
const MODE: u32 = 0o600;

/// The file, while nobody else changes it: two commands at a time would lose what one of them did.
pub(super) struct KeyFile {
    path: PathBuf,
    file: File,
    document: DocumentMut,
}

impl KeyFile {
    /// An existing one, which makes sense.
    pub(super) fn open(path: &Path) -> Result<Self, Failure> {
        Self::enter(path, OpenOptions::new().read(true).write(true))
    }

    /// The same, or an empty one if there is none.
    pub(super) fn open_or_new(path: &Path) -> Result<Self, Failure> {
        let mut options = OpenOptions::new();
        Self::enter(path, options.read(true).write(true).create(true).truncate(false).mode(MODE))
    }

    fn enter(path: &Path, options: &OpenOptions) -> Result<Self, Failure> {
        let unusable = |error: io::Error| {
            Failure::usage(format_args!("{} cannot be read: {error}", path.display()))
        };
        let mut file = options.open(path).map_err(unusable)?;
        file.lock().map_err(unusable)?;
        let mut text = String::new();
        file.read_to_string(&mut text).map_err(unusable)?;
        keys::parse(&text).map_err(|error| {
            let name = path.display();
            let lines: Vec<String> =
                error.problems.iter().map(|problem| format!("{name}:{problem}")).collect();
            Failure::usage(lines.join("\n"))
        })?;
        let document = text.parse().map_err(Failure::usage)?;
        Ok(Self { path: path.to_owned(), file, document })
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

    /// Writes it where it is, so that its owner, its mode and links to it stay. Whoever reads it with
    /// a lock, as a server does, sees the old one or the new one.
    pub(super) fn save(&mut self) -> Result<(), Failure> {
        let text = self.document.to_string();
        let mut write = || -> io::Result<()> {
            self.file.rewind()?;
            self.file.write_all(text.as_bytes())?;
            self.file.set_len(text.len() as u64)?;
            self.file.sync_all()
        };
        write().map_err(|error| {
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
