//! IDs in databases: a `BIGINT`, or an `INTEGER` of SQLite, never a float or a text.
//!
//! An ID above [`i64::MAX`] and a negative number are errors with a
//! [`SignedError`](crate::SignedError), on the way in and on the way out.

#[cfg(feature = "postgres-types")]
mod postgres;
#[cfg(feature = "rusqlite")]
mod sqlite;
#[cfg(feature = "sqlx")]
mod sqlx;
