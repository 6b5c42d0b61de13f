//! The log of a server: one line for each event, on stderr.
//!
//! ```text
//! 2026-11-15T17:31:11.988Z INFO frazil_server::monitor: the node is ready state=ready was=starting
//! ```
//!
//! An event becomes a [`Record`]; [`Repeats`] holds back what was just said; a line is written at
//! once and as a whole. Whatever users wrote is escaped, so that a line is always one event.

mod filter;
mod line;
mod record;
mod repeats;
mod subscriber;

use std::io::{self, IsTerminal, Write};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use clap::ValueEnum;
use frazil::coord::time::{boot_time, unix_ms};
use tracing::Level;

pub(crate) use self::filter::Filter;
use self::record::Record;
use self::repeats::Repeats;

/// How lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    /// For people: TIME LEVEL target: message key=value.
    Text,
    /// For programs: time, level, target, message and fields as one JSON object per line.
    Json,
}

/// Where events go. It is the subscriber of `tracing`; spans are not kept.
pub(crate) struct Log {
    filter: RwLock<Filter>,
    form: Form,
    is_coloured: bool,
    repeats: Mutex<Repeats>,
    now: fn() -> Now,
    sink: Mutex<Box<dyn Write + Send>>,
}

/// A moment by both clocks.
#[derive(Clone, Copy)]
struct Now {
    /// What is written.
    unix_ms: u64,
    /// What windows are counted in.
    elapsed: Duration,
}

impl Log {
    /// Takes all events of the process from now on.
    pub(crate) fn start(filter: Filter, form: Form) -> Arc<Self> {
        let log = Arc::new(Self {
            is_coloured: std::env::var_os("NO_COLOR").is_none() && io::stderr().is_terminal(),
            ..Self::new(filter, form, now, Box::new(io::stderr()))
        });
        // Where one was started already, events go there.
        let _ = tracing::subscriber::set_global_default(log.clone());
        log
    }

    fn new(filter: Filter, form: Form, now: fn() -> Now, sink: Box<dyn Write + Send>) -> Self {
        Self {
            filter: RwLock::new(filter),
            form,
            is_coloured: false,
            repeats: Mutex::default(),
            now,
            sink: Mutex::new(sink),
        }
    }

    /// Logs by another filter from now on.
    pub(crate) fn set_filter(&self, filter: Filter) {
        *self.filter.write().unwrap_or_else(PoisonError::into_inner) = filter;
        tracing::callsite::rebuild_interest_cache();
    }

    /// Tells whoever started the server something, whatever the level: plain words in text, and an
    /// event like any other in JSON, so that every line is an object.
    pub(crate) fn announce(&self, message: &str) {
        match self.form {
            Form::Text => self.put(crate::words::printable(message)),
            Form::Json => self.write(&Record::new(Level::INFO, "frazil", message)),
        }
    }

    /// Why the server ends, where every line must be an object; otherwise it is said as by any
    /// other command.
    pub(crate) fn last_words(&self, message: &str) -> bool {
        if self.form == Form::Json {
            self.write(&Record::new(Level::ERROR, "frazil", message));
        }
        self.form == Form::Json
    }

    /// Says what was held back and whose time has come. To be called about every second.
    pub(crate) fn catch_up(&self) {
        let due = self.repeats().due((self.now)().elapsed);
        due.iter().for_each(|record| self.write(record));
    }

    /// Says all that was held back.
    pub(crate) fn finish(&self) {
        let held_back = self.repeats().drain();
        held_back.iter().for_each(|record| self.write(record));
    }

    fn repeats(&self) -> std::sync::MutexGuard<'_, Repeats> {
        self.repeats.lock().unwrap_or_else(PoisonError::into_inner)
    }

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
        let mut sink = self.sink.lock().unwrap_or_else(PoisonError::into_inner);
        // Nobody is left to tell when stderr is gone.
        let _ = sink.write_all(line.as_bytes());
    }
}

fn now() -> Now {
    Now { unix_ms: unix_ms(), elapsed: boot_time() }
}

#[cfg(test)]
mod tests;
