//! Ids as bytes, without allocating for each.

mod digits;
mod frame;

pub(crate) use self::digits::push_ids;
pub(crate) use self::frame::JsonFrame;
