//! IDs and layouts in JSON.
#![cfg(feature = "serde")]

use frazil_id::{Id, Layout};

#[test]
fn ids_are_written_as_strings_and_read_from_strings_or_integers() {
    let id = Id::from_u64(u64::MAX);
    assert_eq!(serde_json::to_string(&id).unwrap(), "\"18446744073709551615\"");
    for json in ["\"18446744073709551615\"", "18446744073709551615"] {
        assert_eq!(serde_json::from_str::<Id>(json).unwrap(), id);
    }
}

#[test]
fn binary_formats_read_what_they_wrote() {
    let bytes = postcard::to_allocvec(&(Id::from_u64(42), Layout::SONYFLAKE)).unwrap();
    let read: (Id, Layout) = postcard::from_bytes(&bytes).unwrap();
    assert_eq!(read, (Id::from_u64(42), Layout::SONYFLAKE));
}

#[test]
fn what_is_no_id_is_refused() {
    for json in ["\"\"", "\"007\"", "\"+7\"", "-1", "1.5", "18446744073709551616", "null", "[7]"] {
        assert!(serde_json::from_str::<Id>(json).is_err(), "{json}");
    }
}

#[test]
fn layouts_are_written_as_text_and_read_by_name_or_text() {
    let json = serde_json::to_string(&Layout::DISCORD).unwrap();
    assert_eq!(json, format!("\"{}\"", Layout::DISCORD));
    assert_eq!(serde_json::from_str::<Layout>(&json).unwrap(), Layout::DISCORD);
    assert_eq!(serde_json::from_str::<Layout>("\"discord\"").unwrap(), Layout::DISCORD);
    assert!(serde_json::from_str::<Layout>("\"disc\"").is_err());
}
