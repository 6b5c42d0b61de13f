#![doc = include_str!("../README.md")]
//!
//! # How it works
//!
//! `tracing-subscriber` filters events and hands them to the one layer that is ours, `Lines`. There an
//! event becomes a `Record`; `Repeats` holds back what was just said; a line is written at once and
//! as a whole. Whatever users wrote is escaped, so that a line is always one event.

mod filter;
mod line;
mod record;
mod repeats;

use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::sync::Arc;
use std::time::Duration;

use frazil_coord::internal::time::{boot_time, unix_ms};
use frazil_wire::printable;
use frazil_wire::words::instant;
use parking_lot::Mutex;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::{Context, Layer, Layered, SubscriberExt};
use tracing_subscriber::{Registry, reload};

pub use self::filter::{Filter, InvalidFilter};
use self::record::{Record, Value};
use self::repeats::Repeats;

/// How lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum Form {
    /// For people: TIME LEVEL target: message key=value.
    Text,
    /// For programs: time, level, target, message and fields as one JSON object per line.
    Json,
}

/// An error as a line of its own in JSON, for a process that has no log yet, or none any more.
#[must_use]
pub fn json_error(message: &str) -> String {
    line::json(&Record::new(Level::ERROR, "frazil", message), &instant(unix_ms()))
}

/// A name for people, one for programs, and what there is to say.
pub type Fact = (&'static str, &'static str, String);

/// The log of this process: where its events go.
pub struct Log {
    filter: reload::Handle<Targets, Registry>,
    lines: Arc<Lines>,
}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Log").field("form", &self.lines.form).finish_non_exhaustive()
    }
}

/// The events of a log, made into lines.
struct Lines {
    form: Form,
    is_coloured: bool,
    repeats: Mutex<Repeats>,
    now: fn() -> Now,
    sink: Mutex<Box<dyn Write + Send>>,
}

/// The layer of `tracing-subscriber` that has the lines.
struct LinesLayer(Arc<Lines>);

/// A moment by both clocks.
#[derive(Clone, Copy)]
struct Now {
    /// What is written.
    unix_ms: u64,
    /// What windows are counted in.
    elapsed: Duration,
}

type Filtered = Layered<reload::Layer<Targets, Registry>, Registry>;

impl Log {
    /// Takes all events of the process from now on.
    pub fn start(filter: &Filter, form: Form) -> Arc<Self> {
        let is_coloured = std::env::var_os("NO_COLOR").is_none() && io::stderr().is_terminal();
        let sink = Mutex::new(Box::new(io::stderr()) as Box<dyn Write + Send>);
        let lines = Lines { form, is_coloured, repeats: Mutex::default(), now, sink };
        let (log, subscriber) = Self::new(filter, lines);
        // Where one was started already, events go there.
        let _ = tracing::subscriber::set_global_default(subscriber);
        log
    }

    fn new(filter: &Filter, lines: Lines) -> (Arc<Self>, Layered<LinesLayer, Filtered>) {
        let (targets, filter) = reload::Layer::new(filter.targets());
        let lines = Arc::new(lines);
        let layer = LinesLayer(Arc::clone(&lines));
        let subscriber = tracing_subscriber::registry().with(targets).with(layer);
        (Arc::new(Self { filter, lines }), subscriber)
    }

    /// Logs by another filter from now on.
    pub fn set_filter(&self, filter: &Filter) {
        // It fails only where nobody listens any more.
        let _ = self.filter.reload(filter.targets());
    }

    /// Tells whoever started the server something, whatever the level: plain words in text, and an
    /// event like any other in JSON, so that every line is an object.
    pub fn announce(&self, message: &str) {
        self.announce_with(message, &[]);
    }

    /// The same with facts: each a line of its own in text, and all fields of one event in JSON.
    pub fn announce_with(&self, message: &str, facts: &[Fact]) {
        match self.lines.form {
            Form::Text => {
                self.lines.put(printable(message));
                for (name, _, value) in facts {
                    self.lines.put(printable(&format!("  {name:5} {value}")));
                }
            }
            Form::Json => {
                let fields = facts.iter().map(|(_, key, value)| (*key, Value::Text(value.clone())));
                let record = Record::new(Level::INFO, "frazil", message);
                self.lines.write(&Record { fields: fields.collect(), ..record });
            }
        }
    }

    /// Says what was held back and whose time has come. To be called about every second.
    pub fn catch_up(&self) {
        let due = self.lines.repeats.lock().due((self.lines.now)().elapsed);
        due.iter().for_each(|record| self.lines.write(record));
    }

    /// Says all that was held back.
    pub fn finish(&self) {
        let held_back = self.lines.repeats.lock().drain();
        held_back.iter().for_each(|record| self.lines.write(record));
    }
}

impl<S: Subscriber> Layer<S> for LinesLayer {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let (lines, record) = (&self.0, Record::of(event));
        let now = (lines.now)().elapsed;
        let (due, is_written) = {
            let mut repeats = lines.repeats.lock();
            let due = repeats.due(now);
            (due, repeats.admit(event.metadata().callsite(), &record, now))
        };
        due.iter().for_each(|record| lines.write(record));
        if is_written {
            lines.write(&record);
        }
    }
}

impl Lines {
    fn write(&self, record: &Record) {
        let time = instant((self.now)().unix_ms);
        self.put(match self.form {
            Form::Text => line::text(record, &time, self.is_coloured),
            Form::Json => line::json(record, &time),
        });
    }

    /// Writes a line with one call, so that it is not mixed with what others write.
    fn put(&self, mut line: String) {
        line.push('\n');
        // Nobody is left to tell when stderr is gone.
        let _ = self.sink.lock().write_all(line.as_bytes());
    }
}

fn now() -> Now {
    Now { unix_ms: unix_ms(), elapsed: boot_time() }
}

#[cfg(test)]
mod tests;
