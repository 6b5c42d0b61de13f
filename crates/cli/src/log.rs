//! The log of a server: one line for each event, on stderr.
//!
//! ```text
//! 2026-11-15T17:31:11.988Z INFO frazil_server::monitor: the node is ready state=ready was=starting
//! ```
//!
//! `tracing-subscriber` filters events and hands them to the one layer that is ours, [`Lines`]. There an
//! event becomes a [`Record`]; [`Repeats`] holds back what was just said; a line is written at once and
//! as a whole. Whatever users wrote is escaped, so that a line is always one event.

mod filter;
mod line;
mod record;
mod repeats;

use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::ValueEnum;
use frazil::coord::time::{boot_time, unix_ms};
use parking_lot::Mutex;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::{Context, Layer, Layered, SubscriberExt};
use tracing_subscriber::{Registry, reload};

pub(crate) use self::filter::Filter;
use self::record::{Record, Value};
use self::repeats::Repeats;

/// How lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    /// For people: TIME LEVEL target: message key=value.
    Text,
    /// For programs: time, level, target, message and fields as one JSON object per line.
    Json,
}

/// Whether all that a server says on stderr is JSON, errors included.
static IS_JSON: AtomicBool = AtomicBool::new(false);

/// Decides what errors look like before the configuration is known: whoever wants JSON reads no text.
pub(crate) fn look_for_json(arguments: impl Iterator<Item = OsString>) {
    let typed: Vec<OsString> = arguments.skip(1).collect();
    let is_server = typed.iter().any(|word| word == "serve");
    let flag = typed.windows(2).any(|two| two[0] == "--log-format" && two[1] == "json");
    let is_typed = flag || typed.iter().any(|word| word == "--log-format=json");
    let is_set = std::env::var_os("FRAZIL_LOG_FORMAT").is_some_and(|form| form == "json");
    set_form(if is_server && (is_typed || is_set) { Form::Json } else { Form::Text });
}

/// Decides what errors look like.
pub(crate) fn set_form(form: Form) {
    // Relaxed: one thread sets it, before it says anything.
    IS_JSON.store(form == Form::Json, Ordering::Relaxed);
}

/// Whether all that is said on stderr is JSON.
pub(crate) fn is_json() -> bool {
    // Relaxed: see `set_form`.
    IS_JSON.load(Ordering::Relaxed)
}

/// An error as a line in the form that was asked for.
pub(crate) fn error_line(message: &str) -> String {
    match is_json() {
        false => format!("error: {message}"),
        true => {
            let record = Record::new(Level::ERROR, "frazil", message);
            line::json(&record, &crate::words::instant(unix_ms()))
        }
    }
}

/// A name for people, one for programs, and what there is to say.
pub(crate) type Fact = (&'static str, &'static str, String);

/// Where events go.
pub(crate) struct Log {
    filter: reload::Handle<Targets, Registry>,
    lines: Arc<Lines>,
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
    pub(crate) fn start(filter: &Filter, form: Form) -> Arc<Self> {
        set_form(form);
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
    pub(crate) fn set_filter(&self, filter: &Filter) {
        // It fails only where nobody listens any more.
        let _ = self.filter.reload(filter.targets());
    }

    /// Tells whoever started the server something, whatever the level: plain words in text, and an
    /// event like any other in JSON, so that every line is an object.
    pub(crate) fn announce(&self, message: &str) {
        self.announce_with(message, &[]);
    }

    /// The same with facts: each a line of its own in text, and all fields of one event in JSON.
    pub(crate) fn announce_with(&self, message: &str, facts: &[Fact]) {
        match self.lines.form {
            Form::Text => {
                self.lines.put(crate::words::printable(message));
                for (name, _, value) in facts {
                    self.lines.put(crate::words::printable(&format!("  {name:5} {value}")));
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
    pub(crate) fn catch_up(&self) {
        let due = self.lines.repeats.lock().due((self.lines.now)().elapsed);
        due.iter().for_each(|record| self.lines.write(record));
    }

    /// Says all that was held back.
    pub(crate) fn finish(&self) {
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
        let time = crate::words::instant((self.now)().unix_ms);
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
