//! The tests of the crate, in one program. Apart are those that count allocations, and those that
//! `make fuzz` runs for longer.

mod concurrency;
mod generator;
mod layout;
mod presets;
mod rollback;
mod serde;
mod signed;
mod sql;
mod text;
