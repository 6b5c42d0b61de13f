//! An event with everything that is written of it.

use std::fmt::{self, Write};

use tracing::field::{Field, Visit};
use tracing::{Event, Level};

/// No part of an event is longer: what is, is cut before it takes memory.
const PART_BYTES_MAX: usize = super::line::LINE_BYTES_MAX;

/// Whose a key is that nobody knows, as the server logs it: no name is written so.
const NOBODY: &str = "?";

/// What an event says.
#[derive(Clone, Debug)]
pub(super) struct Record {
    pub(super) level: Level,
    pub(super) target: &'static str,
    pub(super) message: String,
    pub(super) fields: Vec<(&'static str, Value)>,
    /// Something was too long.
    pub(super) is_cut: bool,
}

/// What a field holds.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Value {
    /// What may be anything.
    Text(String),
    /// A number or a truth: the same in every form.
    Plain(String),
}

impl Record {
    pub(super) fn new(level: Level, target: &'static str, message: impl Into<String>) -> Self {
        Self { level, target, message: message.into(), fields: Vec::new(), is_cut: false }
    }

    pub(super) fn of(event: &Event<'_>) -> Self {
        let metadata = event.metadata();
        let mut record = Self::new(*metadata.level(), metadata.target(), "");
        event.record(&mut record);
        record
    }

    /// Whether it tells of a change of state; such events have a field of that name.
    pub(super) fn is_change_of_state(&self) -> bool {
        self.fields.iter().any(|(name, _)| *name == "state")
    }

    /// What somebody did, and what came of it: each time counts. So does each wrong key that was
    /// shown as that of a real one; what else is refused is an account of its first time.
    pub(super) fn is_account(&self) -> bool {
        let is_of_somebody = |by: &Value| *by != Value::Text(NOBODY.to_owned());
        match (self.field("refused"), self.field("by")) {
            (None, _) => self.target.ends_with("::audit") || self.target.ends_with("::reload"),
            (Some(Value::Text(what)), Some(by)) => what == "key" && is_of_somebody(by),
            _ => false,
        }
    }

    fn field(&self, name: &str) -> Option<&Value> {
        self.fields.iter().find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    fn add_text(&mut self, field: &Field, value: fmt::Arguments<'_>) {
        let mut part = Part::default();
        self.is_cut |= part.write_fmt(value).is_err();
        match field.name() {
            "message" => self.message = part.0,
            name => self.fields.push((name, Value::Text(part.0))),
        }
    }

    fn add_plain(&mut self, field: &Field, value: impl ToString) {
        self.fields.push((field.name(), Value::Plain(value.to_string())));
    }
}

impl Visit for Record {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.add_text(field, format_args!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.add_text(field, format_args!("{value}"));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.add_plain(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.add_plain(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.add_plain(field, value);
    }
}

/// A text that takes so much and no more.
#[derive(Default)]
struct Part(String);

impl fmt::Write for Part {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = PART_BYTES_MAX.saturating_sub(self.0.len());
        let end = text.floor_char_boundary(room);
        self.0.push_str(&text[..end]);
        if end < text.len() { Err(fmt::Error) } else { Ok(()) }
    }
}
