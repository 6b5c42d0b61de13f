//! The text of a list of keys, changed without losing what people wrote into it.

use frazil_server::keys::{self, KeyEntry, KeysError};
use frazil_server::toml_problem;
use toml_edit::{Array, ArrayOfTables, DocumentMut, Item, Table, value};

use crate::output::{Exit, Failure};

/// A list of keys that makes sense.
pub(super) struct Document(DocumentMut);

impl Document {
    /// # Errors
    /// Everything that is wrong in it.
    pub(super) fn parse(text: &str) -> Result<Self, KeysError> {
        keys::parse(text)?;
        // Whatever is a list of keys is a document.
        let whole = |error: toml_edit::TomlError| KeysError {
            problems: vec![toml_problem(error.message())],
        };
        text.parse().map(Self).map_err(whole)
    }

    pub(super) fn text(&self) -> String {
        self.0.to_string()
    }

    /// The entry of an id. Whoever gives the whole key means its id, and must not see it repeated.
    pub(super) fn find(&self, id: &str) -> Result<KeyEntry, Failure> {
        let id =
            id.strip_prefix("frz_").map_or(id, |rest| rest.split('_').next().unwrap_or_default());
        let entries = keys::parse(&self.text()).map_err(Failure::usage)?;
        let found = entries.into_iter().find(|entry| entry.id == id);
        found.ok_or_else(|| {
            Failure::new(Exit::No, format_args!("there is no key {id:?}: see frazil key ls"))
        })
    }

    /// Whether servers would take it: a name or a certificate may be that of another key already.
    pub(super) fn check(&self) -> Result<(), Failure> {
        keys::parse(&self.text()).map(drop).map_err(|error| {
            Failure::usage(format_args!("the entry does not go with the others: {error:#}"))
        })
    }

    /// Adds an entry; once, however often it is added.
    pub(super) fn add(&mut self, entry: &KeyEntry) {
        self.remove(&entry.id);
        let tables = self.0.entry("key").or_insert(Item::ArrayOfTables(ArrayOfTables::new()));
        if let Some(tables) = tables.as_array_of_tables_mut() {
            tables.push(table(entry));
        }
    }

    pub(super) fn remove(&mut self, id: &str) {
        if let Some(tables) = self.tables() {
            tables.retain(|table| id_of(table) != Some(id));
        }
    }

    /// Ends a key then; what certificates stand for it, stand for the one that takes its place.
    pub(super) fn expire(&mut self, id: &str, when: &str) {
        let tables = self.tables().into_iter().flat_map(ArrayOfTables::iter_mut);
        for table in tables.filter(|table| id_of(table) == Some(id)) {
            table["expires"] = value(when);
            for name in CERTIFICATES {
                table.remove(name);
            }
        }
    }

    fn tables(&mut self) -> Option<&mut ArrayOfTables> {
        self.0.get_mut("key")?.as_array_of_tables_mut()
    }
}

/// An entry as the list has it.
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
    table["roles"] = value(entry.roles.iter().map(|role| role.word()).collect::<Array>());
    if let Some(scopes) = &entry.scopes {
        table["scopes"] = value(scopes.iter().collect::<Array>());
    }
    if let Some(rate) = entry.ids_per_second {
        table["ids_per_second"] = value(i64::from(rate.get()));
    }
    if let Some(rate) = entry.ids_per_second_cluster {
        table["ids_per_second_cluster"] = value(i64::from(rate.get()));
    }
    if let Some(expires) = &entry.expires {
        table["expires"] = value(expires);
    }
    for (name, text) in certificates(entry) {
        table[name] = value(text);
    }
    if !entry.sha256.is_empty() {
        table["sha256"] = value(&entry.sha256);
    }
    table
}

const CERTIFICATES: [&str; 2] = ["certificate_subject", "certificate_san"];

fn certificates(entry: &KeyEntry) -> impl Iterator<Item = (&'static str, &String)> {
    let texts = [&entry.certificate_subject, &entry.certificate_san];
    CERTIFICATES.into_iter().zip(texts).filter_map(|(name, text)| Some((name, text.as_ref()?)))
}

fn id_of(table: &Table) -> Option<&str> {
    table.get("id")?.as_str()
}
