//! Complaints about lines that are no IDs.

use frazil_audit::reader::{Input, Malformed};

use super::shown;
use crate::output::say;
use crate::words;

/// Complaints printed in full; a file of the wrong kind has millions.
const COMPLAINTS_MAX: u64 = 10;
/// Bytes of a line that a complaint shows.
const SHOWN_MAX: usize = 64;

/// Tells the first and counts all.
#[derive(Debug, Default)]
pub(super) struct MalformedLines {
    count: u64,
}

impl MalformedLines {
    pub(super) fn note(&mut self, input: &Input, line: u64, malformed: &Malformed<'_>) {
        self.count += 1;
        if self.count <= COMPLAINTS_MAX {
            let Malformed { text, why, .. } = malformed;
            let text = String::from_utf8_lossy(&text[..text.len().min(SHOWN_MAX)]);
            let (file, text) = (shown(input), words::printable(&text));
            say(format_args!("error: {file}:{line}: \"{text}\" is not an ID: {why}"));
        }
    }

    pub(super) fn tell_rest(&self) {
        if self.count > COMPLAINTS_MAX {
            let more = words::count(self.count - COMPLAINTS_MAX, "more line");
            say(format_args!("error: {more} without an ID"));
        }
    }

    pub(super) const fn count(&self) -> u64 {
        self.count
    }
}
