//! IDs as bytes, without allocating for each.

mod decoded;
mod digits;
mod frame;
mod pieces;

pub(crate) use self::decoded::{DECODED_PIECE, DecodedPieces};
pub(crate) use self::digits::{push_binary_run, push_ids, push_run};
pub(crate) use self::frame::{BEGINNING, JsonFrame, QUOTES};
pub(crate) use self::pieces::{Pieces, digits_of, shared_digits};
