//! The routes: one file for each group of paths.

pub(super) mod admin;
pub(super) mod decode;
mod decode_body;
pub(super) mod elections;
pub(super) mod health;
pub(super) mod ids;
