//! The file: from TOML to the texts of keys, with the place of each.

use std::fs::File;
use std::io::Read;
use std::ops::Range;
use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::key::{KEYS, Key, Kind, sections};
use super::problem::{Origin, Place, Problem};
use super::suggestion;
use crate::words::printable;

/// A configuration has a few kilobytes: what is longer is the wrong file.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// What a file says.
#[derive(Default)]
pub(super) struct Document {
    pub(super) entries: Vec<Entry>,
    pub(super) problems: Vec<Problem>,
    /// Its syntax is wrong: the values are not known.
    pub(super) is_broken: bool,
}

/// A key and what stands behind it.
pub(super) struct Entry {
    pub(super) key: &'static Key,
    /// As it would be typed; a list has several.
    pub(super) texts: Vec<String>,
    pub(super) place: Place,
}

/// Reads a file's text.
pub(super) fn read(path: &Path) -> Result<String, String> {
    let name = printable(&path.display().to_string());
    let no = |why: String| format!("the configuration {name} {why}");
    let file = File::open(path).map_err(|error| no(format!("cannot be opened: {error}")))?;
    if file.metadata().is_ok_and(|about| about.is_dir()) {
        return Err(no("is a directory: name the file in it".to_owned()));
    }
    let mut bytes = Vec::new();
    let read = file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes);
    read.map_err(|error| no(format!("cannot be read: {error}")))?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(no(format!("is longer than {FILE_BYTES_MAX} bytes: it is another file")));
    }
    let text = String::from_utf8(bytes);
    text.map_err(|_| no("is not UTF-8: it is another file, or has another encoding".to_owned()))
}

/// Takes a file's text apart.
pub(super) fn parse(path: &Path, text: &str) -> Document {
    let (table, errors) = DeTable::parse_recoverable(text);
    let mut reading = Reading { path, text, document: Document::default() };
    for error in &errors {
        let span = error.span().unwrap_or_default();
        // Without the line itself: it may hold a password.
        let is_twice = error.message().starts_with("duplicate key");
        let (what, next) = match is_twice {
            true => ("", "; remove one of them"),
            false => ("this is not TOML: ", ""),
        };
        reading.problem(&span, "", format!("{what}{}{next}", error.message()));
        reading.document.is_broken |= !is_twice;
    }
    if !reading.document.is_broken {
        reading.sections(table.get_ref());
    }
    reading.document
}

struct Reading<'a> {
    path: &'a Path,
    text: &'a str,
    document: Document,
}

impl Reading<'_> {
    fn sections(&mut self, table: &DeTable<'_>) {
        for (name, value) in table {
            let section = name.get_ref().as_ref();
            if !sections().any(|known| known == section) {
                self.problem(&name.span(), section, suggestion::for_section(section));
                continue;
            }
            match value.get_ref() {
                DeValue::Table(keys) => self.keys(section, keys),
                other => {
                    let found = found(other);
                    let message = format!(
                        "expected a section, found {found}: write [{section}] above its keys"
                    );
                    self.problem(&name.span(), section, message);
                }
            }
        }
    }

    fn keys(&mut self, section: &str, table: &DeTable<'_>) {
        for (name, value) in table {
            let named = name.get_ref().as_ref();
            let known = KEYS.iter().find(|key| key.section == section && key.name == named);
            let Some(key) = known else {
                let message = suggestion::for_key(section, named);
                self.problem(&name.span(), format!("{section}.{named}"), message);
                continue;
            };
            match texts(key.kind, value) {
                Some(texts) => {
                    let place = self.place(&value.span());
                    self.document.entries.push(Entry { key, texts, place });
                }
                None => {
                    let (expected, found) = (key.kind.words(), found(value.get_ref()));
                    let message = format!("expected {expected}, found {found}");
                    let message = match example(key) {
                        Some(example) => format!("{message}: write it as {named} = {example}"),
                        None => message,
                    };
                    self.problem(&value.span(), key.to_string(), message);
                }
            }
        }
    }

    fn problem(&mut self, span: &Range<usize>, key: impl Into<String>, message: String) {
        let origin = Origin::File(self.place(span));
        self.document.problems.push(Problem::new(origin, key, message));
    }

    fn place(&self, span: &Range<usize>) -> Place {
        let before = &self.text[..self.text.floor_char_boundary(span.start)];
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        Place {
            file: self.path.to_owned(),
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
        }
    }
}

/// A value as it would be typed; nothing if it is of another kind.
fn texts(kind: Kind, value: &Spanned<DeValue<'_>>) -> Option<Vec<String>> {
    match (kind, value.get_ref()) {
        (Kind::Text | Kind::Duration | Kind::NumberOrText, DeValue::String(text)) => {
            Some(vec![text.to_string()])
        }
        (Kind::Number | Kind::NumberOrText, DeValue::Integer(number)) => {
            // What no integer holds stays as it is, for the parser of the argument to refuse.
            let value = i128::from_str_radix(number.as_str(), number.radix());
            Some(vec![value.map_or_else(|_| number.to_string(), |value| value.to_string())])
        }
        (Kind::Truth, DeValue::Boolean(truth)) => Some(vec![truth.to_string()]),
        (Kind::List, DeValue::Array(items)) => {
            let items = items.iter().map(|item| item.get_ref().as_str().map(str::to_owned));
            items.collect()
        }
        _ => None,
    }
}

/// How a key is written, where a few words do not say it.
fn example(key: &Key) -> Option<&'static str> {
    match key.kind {
        Kind::Duration => Some("\"30s\""),
        Kind::Truth => Some("true"),
        Kind::List => Some("[\"one\", \"two\"]"),
        Kind::Text | Kind::Number | Kind::NumberOrText => None,
    }
}

const fn found(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a text",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a number with a fraction",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a section",
    }
}
