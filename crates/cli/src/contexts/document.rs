//! The text of the file of contexts, changed without losing what people wrote into it.

use std::collections::BTreeMap;
use std::path::Path;

use frazil_server::toml_problem;
use serde::Deserialize;
use toml_edit::{DocumentMut, Item, Table, value};

use super::{Context, check_name, unknown};
use crate::output::Failure;

/// The key of the file that names the context in use.
const CURRENT: &str = "current";
/// The table that has a table for each context.
const CONTEXTS: &str = "contexts";

/// A file of contexts that makes sense.
#[derive(Debug, Default)]
pub(crate) struct Document {
    text: DocumentMut,
    known: Known,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Known {
    current: Option<String>,
    #[serde(default)]
    contexts: BTreeMap<String, Context>,
}

impl Document {
    pub(crate) fn parse(path: &Path, text: &str) -> Result<Self, Failure> {
        let shown = path.display();
        // Not the line itself: somebody may have written a key there.
        let known: Known = toml::from_str(text).map_err(|error| {
            let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
            let line = before.matches('\n').count() + 1;
            Failure::usage(format_args!("{shown}:{line}: {}", toml_problem(error.message())))
        })?;
        for (name, context) in &known.contexts {
            let checked = check_name(name).and_then(|()| context.check());
            checked.map_err(|failure| match failure {
                Failure::Message(exit, why) => {
                    Failure::new(exit, format_args!("{shown}: context {name:?}: {why}"))
                }
                other => other,
            })?;
        }
        // Whatever has contexts is a document.
        let text = text.parse().map_err(|error: toml_edit::TomlError| {
            Failure::usage(format_args!("{shown}: {}", toml_problem(error.message())))
        })?;
        Ok(Self { text, known })
    }

    pub(crate) fn text(&self) -> String {
        self.text.to_string()
    }

    /// The name of the context in use.
    pub(crate) fn current(&self) -> Option<&str> {
        self.known.current.as_deref()
    }

    /// All contexts, by name.
    pub(crate) fn all(&self) -> &BTreeMap<String, Context> {
        &self.known.contexts
    }

    pub(crate) fn find(&self, name: &str) -> Result<&Context, Failure> {
        let names = self.known.contexts.keys().map(String::as_str);
        self.known.contexts.get(name).ok_or_else(|| unknown(name, names))
    }

    /// Adds a context, or puts it in the place of one with its name.
    pub(crate) fn put(&mut self, name: &str, context: &Context) -> Result<(), Failure> {
        check_name(name)?;
        context.check()?;
        let mut table = Table::new();
        for (key, said) in context.values() {
            if let Some(said) = said {
                table.insert(key, value(said));
            }
        }
        self.tables().insert(name, Item::Table(table));
        self.known.contexts.insert(name.to_owned(), context.clone());
        Ok(())
    }

    /// Removes a context. If it was in use none is after that.
    pub(crate) fn remove(&mut self, name: &str) -> Result<(), Failure> {
        self.find(name)?;
        self.tables().remove(name);
        self.known.contexts.remove(name);
        if self.current() == Some(name) {
            self.select(None)?;
        }
        Ok(())
    }

    /// Puts a context into use, or none.
    pub(crate) fn select(&mut self, name: Option<&str>) -> Result<(), Failure> {
        match name {
            Some(name) => {
                self.find(name)?;
                // Assigned, not inserted: what people wrote above it stays.
                self.text[CURRENT] = value(name);
            }
            None => {
                self.text.remove(CURRENT);
            }
        }
        self.known.current = name.map(str::to_owned);
        Ok(())
    }

    fn tables(&mut self) -> &mut dyn toml_edit::TableLike {
        let mut tables = Table::new();
        // [contexts.NAME] says it.
        tables.set_implicit(true);
        let tables = self.text.entry(CONTEXTS).or_insert(Item::Table(tables));
        tables.as_table_like_mut().expect("it was read as a table")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Document, Failure> {
        Document::parse(Path::new("contexts.toml"), text)
    }

    #[test]
    fn what_people_wrote_stays_when_a_context_is_added() {
        let mut document =
            parse("# mine\ncurrent = \"a\"\n\n[contexts.a] # old\nstore = \"memory:\"\n").unwrap();
        let server = Some("http://127.0.0.1:7780".to_owned());
        document.put("b", &Context { server, ..Context::default() }).unwrap();
        document.select(Some("b")).unwrap();
        let text = document.text();
        assert!(text.contains("# mine") && text.contains("# old"), "{text}");
        let again = parse(&text).unwrap();
        assert_eq!((again.current(), again.all().len()), (Some("b"), 2));
        document.remove("b").unwrap();
        assert_eq!(parse(&document.text()).unwrap().current(), None);
    }

    #[test]
    fn what_makes_no_sense_is_refused_and_a_password_not_repeated() {
        for text in [
            "[contexts.a]",
            "[contexts.a]\nnamespace = \"x\"",
            "[contexts.a]\nserver = \"http://me:canary@h\"",
            "[contexts.a]\nstore = \"redis://me:canary@h\"",
            "[contexts.a]\nstore = \"memory:\"\ncert = \"c\"",
            "[contexts.a]\nstore = \"memory:\"\nnamespace = \"/\"",
            "[contexts.a]\nstore = \"memory:\"\nkey = \"canary\"",
            "[contexts.a]\nstore = [\"redis://me:canary@h\"]",
            "contexts = \"canary\"",
            "[contexts]\na = \"redis://me:canary@h\"",
            "current = [\"canary\"]",
            "[contexts.a]\nstore = redis://me:canary@h",
            "[contexts.a]\nstore = \"redis://h?password_file=secret\"",
            "[contexts.a]\nstore = \"rediss://h?ca=ca.pem\"",
            "[contexts.a]\nstore = \"static:1?state=state\"",
            "[contexts.\"-a\"]\nstore = \"memory:\"",
            "[contexts.\"\"]\nstore = \"memory:\"",
            "current = 7",
            "server = \"http://h\"",
        ] {
            let Err(Failure::Message(_, why)) = parse(text) else { panic!("{text}") };
            assert!(!why.contains("canary"), "{why}");
        }
    }
}
