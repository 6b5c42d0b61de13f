//! IDs for `rusqlite`.

use alloc::boxed::Box;

use rusqlite::Error;
use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSql, ToSqlOutput, ValueRef};

use crate::id::Id;

impl ToSql for Id {
    fn to_sql(&self) -> Result<ToSqlOutput<'_>, Error> {
        match self.to_i64() {
            Ok(value) => Ok(ToSqlOutput::from(value)),
            Err(error) => Err(Error::ToSqlConversionFailure(Box::new(error))),
        }
    }
}

impl FromSql for Id {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let value = i64::column_result(value)?;
        Self::from_i64(value).map_err(|error| FromSqlError::Other(Box::new(error)))
    }
}
