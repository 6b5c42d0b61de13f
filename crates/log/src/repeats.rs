//! Repeated messages, which are not printed again.
//!
//! The same event (place in the code and message) is written once in a window of ten seconds; how
//! often it came again is written when the window ends. Other fields with the same message are
//! written too, up to a few. A change of state is always written, and so is what somebody did, and
//! whatever is logged to debug: who asks for that wants to see all of it.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use frazil_wire::words::count;
use tracing::Level;
use tracing::callsite::Identifier;

use super::record::{Record, Value};

/// Long enough that a storm is a few lines a minute, short enough that nobody waits for the count.
const WINDOW: Duration = Duration::from_secs(10);
/// Events that differ in their fields alone and are written within a window.
const VARIANTS_MAX: usize = 8;
/// Windows that are open at a time; further events are written as they come.
const WINDOWS_MAX: usize = 256;

/// The windows that are open.
#[derive(Default)]
pub(super) struct Repeats {
    windows: HashMap<(Identifier, String), Window>,
    hashes: RandomState,
}

struct Window {
    until: Duration,
    /// Hashes of the fields that were written.
    variants: Vec<u64>,
    held_back: u64,
    first: Record,
}

impl Repeats {
    /// Whether an event is to be written.
    pub(super) fn admit(&mut self, place: Identifier, record: &Record, now: Duration) -> bool {
        if record.is_change_of_state() || record.is_account() || record.level > Level::INFO {
            return true;
        }
        let variant = self.hashes.hash_one(&record.fields);
        let kind = (place, record.message.clone());
        let Some(window) = self.windows.get_mut(&kind) else {
            if self.windows.len() < WINDOWS_MAX {
                let first = Record { fields: Vec::new(), ..record.clone() };
                let until = now.saturating_add(WINDOW);
                let window = Window { until, variants: vec![variant], held_back: 0, first };
                self.windows.insert(kind, window);
            }
            return true;
        };
        let is_new = !window.variants.contains(&variant) && window.variants.len() < VARIANTS_MAX;
        if is_new {
            window.variants.push(variant);
        } else {
            window.held_back += 1;
        }
        is_new
    }

    /// Closes the windows that have ended, and says what they held back.
    pub(super) fn due(&mut self, now: Duration) -> Vec<Record> {
        let ended = self.windows.extract_if(|_, window| window.until <= now);
        ended.filter_map(|(_, window)| window.report()).collect()
    }

    /// Closes all windows.
    pub(super) fn drain(&mut self) -> Vec<Record> {
        self.windows.drain().filter_map(|(_, window)| window.report()).collect()
    }
}

impl Window {
    fn report(self) -> Option<Record> {
        let times = count(self.held_back, "time");
        let message = format!("repeated {times}: {}", self.first.message);
        let fields = vec![("repeated", Value::Plain(self.held_back.to_string()))];
        (self.held_back > 0).then_some(Record { message, fields, ..self.first })
    }
}
