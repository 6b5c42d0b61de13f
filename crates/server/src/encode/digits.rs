//! IDs in decimal, one after the other.

use frazil::Batch;
use frazil_id::Run;

/// The digits of the largest ID.
const DIGITS_MAX: usize = 20;

/// Appends every ID of a batch in decimal, after `before` and followed by `after`.
pub(crate) fn push_ids(out: &mut Vec<u8>, batch: &Batch, before: &[u8], after: &[u8]) {
    out.reserve(batch.len() * (before.len() + DIGITS_MAX + after.len()));
    for run in batch.runs() {
        push_run(out, &run, before, after);
    }
}

/// Most IDs of a run differ from the one before in the last digit only.
pub(crate) fn push_run(out: &mut Vec<u8>, run: &Run, before: &[u8], after: &[u8]) {
    let mut number = itoa::Buffer::new();
    let mut id = run.first.to_u64();
    let mut left = run.count;
    while left > 0 {
        let digits = number.format(id).as_bytes();
        let (head, unit) = digits.split_at(digits.len() - 1);
        let unit = unit[0];
        // Up to the next ten, only the unit changes; with another stride every ID is on its own.
        let tens = if run.stride == 1 { u64::from(b'9' - unit) + 1 } else { 1 }.min(left);
        for digit in (unit..=b'9').take(usize::try_from(tens).unwrap_or(1)) {
            out.extend_from_slice(before);
            out.extend_from_slice(head);
            out.push(digit);
            out.extend_from_slice(after);
        }
        id = id.wrapping_add(tens * run.stride);
        left -= tens;
    }
}

#[cfg(test)]
mod tests {
    use frazil_id::Id;

    use super::*;

    fn written(first: u64, count: u64, stride: u64) -> String {
        let mut out = Vec::new();
        let run = Run { first: Id::from_u64(first), count, stride };
        push_run(&mut out, &run, b"<", b">");
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn every_id_is_written_as_its_number() {
        for (first, count, stride) in
            [(0, 25, 1), (95, 10, 1), (7, 3, 1024), (9, 1, 1), (u64::MAX - 12, 12, 1), (5, 0, 1)]
        {
            let expected: String =
                (0..count).map(|n| format!("<{}>", first + n * stride)).collect();
            assert_eq!(written(first, count, stride), expected);
        }
    }
}
