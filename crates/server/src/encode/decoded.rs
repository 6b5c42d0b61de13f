//! IDs that were taken apart, written piece by piece.

use frazil_id::{Id, Layout};
use frazil_wire::Decoded;

/// IDs of one piece: some 30 kilobytes of JSON, and less than a millisecond.
pub(crate) const DECODED_PIECE: usize = 128;

/// What is left to write of them. Until then an ID takes eight bytes.
#[derive(Debug)]
pub(crate) struct DecodedPieces {
    ids: std::vec::IntoIter<u64>,
    layout: Layout,
    layout_text: String,
    /// What comes before the next one.
    separator: &'static [u8],
}

impl DecodedPieces {
    /// All IDs must be of the layout.
    pub(crate) fn new(ids: Vec<u64>, layout: Layout) -> Self {
        let layout_text = layout.to_string();
        Self { ids: ids.into_iter(), layout, layout_text, separator: b"" }
    }

    /// Whether everything was written.
    pub(crate) fn is_done(&self) -> bool {
        self.ids.as_slice().is_empty()
    }

    /// Writes the next ones.
    pub(crate) fn write_next(&mut self, out: &mut Vec<u8>) {
        let Self { ids, layout, layout_text, separator } = self;
        for id in ids.by_ref().take(DECODED_PIECE).map(Id::from_u64) {
            // Those of another layout were refused before.
            let Ok(parts) = id.parts(layout) else { continue };
            out.extend_from_slice(std::mem::replace(separator, b","));
            // Writing to a vector does not fail.
            let _ = serde_json::to_writer(&mut *out, &Decoded::new(id, parts, layout, layout_text));
        }
    }
}
