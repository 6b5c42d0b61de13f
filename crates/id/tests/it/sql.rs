//! IDs on their way into databases and back.

use std::error::Error;

use frazil_id::{Id, SignedError};

/// Some that fit, the ends among them.
const FITTING: [u64; 3] = [0, 380_314_777_215_332_352, i64::MAX.cast_unsigned()];
const TOO_LARGE: Id = Id::from_u64(u64::MAX);

/// What an error rests on at last.
fn is_signed_error(error: &(dyn Error + 'static)) -> bool {
    std::iter::successors(Some(error), |error| (*error).source())
        .any(|error| error.is::<SignedError>())
}

#[cfg(feature = "rusqlite")]
mod rusqlite {
    use ::rusqlite::Connection;

    use super::*;

    fn database() -> Connection {
        let database = Connection::open_in_memory().unwrap();
        database.execute("CREATE TABLE t (id INTEGER PRIMARY KEY)", ()).unwrap();
        database
    }

    #[test]
    fn ids_are_keys_of_a_table_and_sort_as_ids_do() {
        let database = database();
        let ids = FITTING.map(Id::from_u64);
        for id in ids {
            database.execute("INSERT INTO t VALUES (?1)", [id]).unwrap();
        }
        let mut rows = database.prepare("SELECT id FROM t ORDER BY id").unwrap();
        let stored: Result<Vec<Id>, _> = rows.query_map((), |row| row.get(0)).unwrap().collect();
        assert_eq!(stored.unwrap(), ids);
    }

    #[test]
    fn what_does_not_fit_is_an_error_both_ways() {
        let database = database();
        let refused = database.execute("INSERT INTO t VALUES (?1)", [TOO_LARGE]).unwrap_err();
        assert!(is_signed_error(&refused), "{refused}");
        for (value, is_number) in [("-1", true), ("'7'", false)] {
            let read =
                database.query_row(&format!("SELECT {value}"), (), |row| row.get::<_, Id>(0));
            assert_eq!(is_signed_error(&read.unwrap_err()), is_number, "{value}");
        }
    }
}

#[cfg(feature = "postgres-types")]
mod postgres {
    use bytes::BytesMut;
    use postgres_types::{FromSql, ToSql, Type};

    use super::*;

    #[test]
    fn ids_are_eight_bytes_from_the_highest_and_come_back() {
        for bits in FITTING {
            let (id, mut raw) = (Id::from_u64(bits), BytesMut::new());
            let _ = id.to_sql_checked(&Type::INT8, &mut raw).unwrap();
            assert_eq!(raw[..], bits.to_be_bytes());
            assert_eq!(Id::from_sql(&Type::INT8, &raw).unwrap(), id);
        }
        let (ids, mut raw) = (FITTING.map(Id::from_u64).to_vec(), BytesMut::new());
        let _ = ids.to_sql_checked(&Type::INT8_ARRAY, &mut raw).unwrap();
        assert_eq!(Vec::<Id>::from_sql(&Type::INT8_ARRAY, &raw).unwrap(), ids);
    }

    #[test]
    fn what_does_not_fit_is_an_error_both_ways() {
        let mut raw = BytesMut::new();
        let refused = TOO_LARGE.to_sql_checked(&Type::INT8, &mut raw).err().unwrap();
        assert!(is_signed_error(&*refused), "{refused}");
        let refused = Id::from_sql(&Type::INT8, &[0xff; 8]).unwrap_err();
        assert!(is_signed_error(&*refused), "{refused}");
        for other in [Type::INT4, Type::TEXT, Type::NUMERIC] {
            assert!(
                !<Id as ToSql>::accepts(&other) && !<Id as FromSql>::accepts(&other),
                "{other}"
            );
        }
    }
}

#[cfg(feature = "sqlx")]
mod sqlx {
    use sqlx_core::any::{Any, AnyArguments, AnyTypeInfoKind, AnyValue, AnyValueKind};
    use sqlx_core::arguments::Arguments;
    use sqlx_core::decode::Decode;
    use sqlx_core::types::Type;
    use sqlx_core::value::Value;

    use super::*;

    /// A value as a database gives it.
    fn read(kind: AnyValueKind) -> Result<Id, sqlx_core::error::BoxDynError> {
        <Id as Decode<Any>>::decode(AnyValue { kind }.as_ref())
    }

    #[test]
    fn ids_are_big_integers_and_come_back() {
        assert_eq!(<Id as Type<Any>>::type_info().kind(), AnyTypeInfoKind::BigInt);
        for bits in FITTING {
            let (id, mut arguments) = (Id::from_u64(bits), AnyArguments::default());
            arguments.add(id).unwrap();
            let sent = arguments.values.0.remove(0);
            assert!(matches!(sent, AnyValueKind::BigInt(value) if value.cast_unsigned() == bits));
            assert_eq!(read(sent).unwrap(), id);
        }
    }

    #[test]
    fn what_does_not_fit_is_an_error_both_ways() {
        let refused = AnyArguments::default().add(TOO_LARGE).unwrap_err();
        assert!(is_signed_error(&*refused), "{refused}");
        let refused = read(AnyValueKind::BigInt(-1)).unwrap_err();
        assert!(is_signed_error(&*refused), "{refused}");
        assert!(read(AnyValueKind::Bool(true)).is_err());
    }
}
