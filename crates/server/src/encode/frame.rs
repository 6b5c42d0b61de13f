//! The JSON around IDs: most of it is the same in every answer of a node.

use std::io::Write;

use frazil::Layout;
use frazil_id::{Id, rfc3339};

use super::push_ids;
use crate::policy::admission::IssuedIds;

/// Bytes of an answer besides its IDs, node name and layout.
const AROUND_BYTES: usize = 256;

/// What comes before the first ID.
pub(crate) const BEGINNING: &[u8] = b"{\"ids\":[";

/// What comes before and after each ID.
pub(crate) const QUOTES: (&[u8], &[u8]) = (b"\"", b"\",");

/// Writes the answer of `POST /v1/ids`; see [`frazil_wire::IdsReply`].
#[derive(Debug)]
pub(crate) struct JsonFrame {
    layout: Layout,
    /// `,"metadata":{"node":"...","worker":`
    node: String,
    /// `","layout":"...","region":...,"scope":`
    layout_and_region: String,
}

impl JsonFrame {
    pub(crate) fn new(node: &str, layout: Layout, region: Option<&str>) -> Self {
        let json = |value: serde_json::Value| value.to_string();
        let layout_text = json(layout.to_string().into());
        Self {
            layout,
            node: format!(",\"metadata\":{{\"node\":{},\"worker\":", json(node.into())),
            layout_and_region: format!(
                "\",\"layout\":{layout_text},\"region\":{},\"scope\":",
                json(region.into())
            ),
        }
    }

    /// The whole answer. The scope's name is declared, so it needs no escapes.
    pub(crate) fn write(&self, issued: &IssuedIds, scope: Option<&str>) -> Vec<u8> {
        let batch = &issued.batch;
        let around = AROUND_BYTES + self.node.len() + self.layout_and_region.len();
        let mut out = Vec::with_capacity(batch.len() * 23 + around);
        out.extend_from_slice(BEGINNING);
        let (before, after) = QUOTES;
        push_ids(&mut out, batch, before, after);
        out.pop();
        self.write_end(&mut out, issued, scope);
        out
    }

    /// What follows the last ID.
    pub(crate) fn write_end(&self, out: &mut Vec<u8>, issued: &IssuedIds, scope: Option<&str>) {
        let batch = &issued.batch;
        let mut number = itoa::Buffer::new();
        out.extend_from_slice(b"],\"count\":");
        out.extend_from_slice(number.format(batch.len()).as_bytes());
        out.extend_from_slice(self.node.as_bytes());
        out.extend_from_slice(number.format(issued.worker).as_bytes());
        out.extend_from_slice(b",\"token\":\"");
        out.extend_from_slice(number.format(issued.token.0).as_bytes());
        out.extend_from_slice(self.layout_and_region.as_bytes());
        match scope {
            Some(scope) => drop(write!(out, "\"{scope}\"")),
            None => out.extend_from_slice(b"null"),
        }
        self.write_times(out, issued);
    }

    fn write_times(&self, out: &mut Vec<u8>, issued: &IssuedIds) {
        let mut runs = issued.batch.runs();
        let first = runs.next().map(|run| run.first).unwrap_or_default();
        let last = runs.last().map_or(first, |run| run.first);
        out.extend_from_slice(b",\"first_time\":\"");
        let begin = out.len();
        self.write_time(out, first);
        let end = out.len();
        out.extend_from_slice(b"\",\"last_time\":\"");
        // Most answers begin and end in the same tick.
        match self.tick(first) == self.tick(last) {
            true => out.extend_from_within(begin..end),
            false => self.write_time(out, last),
        }
        out.extend_from_slice(b"\"}}");
    }

    fn write_time(&self, out: &mut Vec<u8>, id: Id) {
        let unix_ms = self.layout.unix_ms(self.tick(id)).cast_signed();
        let instant = rfc3339::Instant::from_unix_ms(unix_ms);
        match instant.to_bytes() {
            Some(text) => out.extend_from_slice(&text),
            // Writing to a vector does not fail.
            None => drop(write!(out, "{instant}")),
        }
    }

    fn tick(&self, id: Id) -> u64 {
        id.parts(&self.layout).map_or(0, |parts| parts.tick)
    }
}
