//! Files with eight bytes for each ID.

use std::io::{self, Read};
use std::ops::ControlFlow;

use frazil_id::Id;

use super::Entry;
use super::malformed::{Malformed, MalformedReason};

/// Bytes read at once.
const BLOCK_BYTES: usize = 262_144;
const ID_BYTES: usize = size_of::<u64>();

/// Hands out the IDs with their numbers from 1, until the input ends or the taker has enough.
pub(super) fn each(
    input: &mut dyn Read,
    mut take: impl FnMut(Entry<'_>) -> ControlFlow<()>,
) -> io::Result<()> {
    let mut block = vec![0; BLOCK_BYTES];
    let mut kept = 0;
    let mut number = 1;
    loop {
        let read = match input.read(&mut block[kept..]) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            read => read?,
        };
        let filled = kept + read;
        let (ids, rest) = block[..filled].as_chunks::<ID_BYTES>();
        for id in ids {
            if take((number, Ok(Id::from_u64(u64::from_be_bytes(*id))))).is_break() {
                return Ok(());
            }
            number += 1;
        }
        kept = rest.len();
        if read == 0 {
            if kept > 0 {
                let _ = take((number, Err(Malformed { text: rest, why: MalformedReason::CutOff })));
            }
            return Ok(());
        }
        block.copy_within(filled - kept..filled, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_read_in_order_and_a_cut_one_is_told() {
        let mut bytes: Vec<u8> =
            [1, u64::MAX].iter().flat_map(|id: &u64| id.to_be_bytes()).collect();
        bytes.extend([0, 0, 7]);
        let mut entries = Vec::new();
        let read = each(&mut &bytes[..], |(number, entry)| {
            entries.push((number, entry.map(Id::to_u64).map_err(|malformed| malformed.why)));
            ControlFlow::Continue(())
        });
        assert!(read.is_ok());
        assert_eq!(entries, [(1, Ok(1)), (2, Ok(u64::MAX)), (3, Err(MalformedReason::CutOff))]);
    }
}
