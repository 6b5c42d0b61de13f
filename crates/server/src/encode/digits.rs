//! IDs one after the other, in decimal or binary.

use frazil::Batch;
use frazil_id::Run;

/// The digits of the largest ID.
const DIGITS_MAX: usize = 20;
/// IDs in a row that differ in their last digit alone.
const TEN: u64 = 10;

/// Appends every ID of a batch in decimal, after `before` and followed by `after`.
pub(crate) fn push_ids(out: &mut Vec<u8>, batch: &Batch, before: &[u8], after: &[u8]) {
    out.reserve(batch.len() * (before.len() + DIGITS_MAX + after.len()));
    for run in batch.runs() {
        push_run(out, &run, before, after);
    }
}

/// Appends the IDs of a run in decimal, ten at a time where they follow each other.
pub(crate) fn push_run(out: &mut Vec<u8>, run: &Run, before: &[u8], after: &[u8]) {
    let mut tens = Tens { before, after, digits: Vec::new(), text: Vec::new() };
    let mut id = run.first.to_u64();
    let mut left = run.count;
    while left > 0 {
        let is_ten = run.stride == 1 && id.is_multiple_of(TEN) && left >= TEN;
        let count = if is_ten {
            out.extend_from_slice(tens.starting_at(id));
            TEN
        } else {
            out.extend_from_slice(before);
            out.extend_from_slice(itoa::Buffer::new().format(id).as_bytes());
            out.extend_from_slice(after);
            1
        };
        id = id.wrapping_add(count * run.stride);
        left -= count;
    }
}

/// Ten IDs as text. Those of the next ten mostly differ in one digit, which is written over.
struct Tens<'a> {
    before: &'a [u8],
    after: &'a [u8],
    /// Of the first one.
    digits: Vec<u8>,
    text: Vec<u8>,
}

impl Tens<'_> {
    fn starting_at(&mut self, id: u64) -> &[u8] {
        let mut number = itoa::Buffer::new();
        let digits = number.format(id).as_bytes();
        match (digits, self.digits.as_slice()) {
            ([head @ .., ten, _], [known @ .., _, _]) if head == known => {
                let place = self.before.len() + head.len();
                let length = self.before.len() + digits.len() + self.after.len();
                for one in self.text.chunks_exact_mut(length) {
                    one[place] = *ten;
                }
            }
            _ => self.write(digits),
        }
        self.digits.clear();
        self.digits.extend_from_slice(digits);
        &self.text
    }

    fn write(&mut self, digits: &[u8]) {
        self.text.clear();
        let (_, head) = digits.split_last().unwrap_or((&0, &[]));
        for unit in b'0'..=b'9' {
            for part in [self.before, head, &[unit], self.after] {
                self.text.extend_from_slice(part);
            }
        }
    }
}

/// Appends the IDs of a run as big-endian numbers of eight bytes.
pub(crate) fn push_binary_run(out: &mut Vec<u8>, run: &Run) {
    let start = out.len();
    let count = usize::try_from(run.count).unwrap_or(usize::MAX);
    out.resize(start + count * size_of::<u64>(), 0);
    let (places, _) = out[start..].as_chunks_mut();
    let mut id = run.first.to_u64();
    for place in places {
        *place = id.to_be_bytes();
        id = id.wrapping_add(run.stride);
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
        for (first, count, stride) in [
            (0, 25, 1),
            (95, 10, 1),
            (7, 3, 1024),
            (9, 1, 1),
            (u64::MAX - 12, 12, 1),
            (5, 0, 1),
            (0, 2500, 1),
            (987, 1234, 1),
            (9_999_990, 20, 1),
            (90, 30, 10),
            (100, 100, 3),
        ] {
            let expected: String =
                (0..count).map(|n| format!("<{}>", first + n * stride)).collect();
            assert_eq!(written(first, count, stride), expected);
        }
    }

    #[test]
    fn binary_ids_are_big_endian_numbers_after_what_is_there() {
        let mut out = vec![7];
        push_binary_run(&mut out, &Run { first: Id::from_u64(255), count: 3, stride: 1 });
        let expected: Vec<u8> =
            [255_u64, 256, 257].into_iter().flat_map(u64::to_be_bytes).collect();
        assert_eq!((out[0], &out[1..]), (7, &expected[..]));
        push_binary_run(&mut out, &Run { first: Id::from_u64(1), count: 0, stride: 1 });
        assert_eq!(out.len(), 25);
    }
}
