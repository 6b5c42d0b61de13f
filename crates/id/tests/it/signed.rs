//! IDs as signed integers and in hexadecimal digits.

use frazil_id::{Id, Layout, PRESETS, Parts, SignedError};

#[test]
fn every_id_up_to_the_highest_signed_integer_is_one_and_comes_back() {
    for bits in [0, 1, 380_314_777_215_332_352, i64::MAX.cast_unsigned()] {
        let id = Id::from_u64(bits);
        let signed = id.to_i64().unwrap();
        assert_eq!(i64::try_from(id), Ok(signed));
        assert_eq!(signed.cast_unsigned(), bits);
        assert_eq!((Id::from_i64(signed), Id::try_from(signed)), (Ok(id), Ok(id)));
    }
}

#[test]
fn what_does_not_fit_is_said_and_never_wrapped() {
    let id = Id::from_u64(1 << 63);
    assert_eq!(id.to_i64(), Err(SignedError::TooLarge { id }));
    assert_eq!(i64::try_from(id), Err(SignedError::TooLarge { id }));
    for value in [-1, i64::MIN] {
        assert_eq!(Id::from_i64(value), Err(SignedError::Negative { value }));
    }
    let told = id.to_i64().unwrap_err().to_string();
    assert!(told.contains("9223372036854775808") && told.contains("63 bits"), "{told}");
}

#[test]
fn the_last_id_fits_unless_its_layout_has_all_64_bits() {
    for &(name, layout) in PRESETS {
        let last = layout.encode(Parts {
            tick: layout.last_tick(),
            worker: layout.last_worker(),
            sequence: layout.last_sequence(),
        });
        assert_eq!(last.unwrap().to_i64().is_ok(), layout.bits() < 64, "{name}");
    }
}

#[test]
fn the_time_of_an_id_leads_back_to_its_tick() {
    let layout = Layout::SONYFLAKE;
    let id = layout.encode(Parts { tick: 77, worker: 3, sequence: 5 }).unwrap();
    let unix_ms = id.unix_ms(&layout).unwrap();
    assert_eq!(unix_ms, 1_409_529_600_000 + 770);
    assert!(Id::range(&layout, unix_ms..unix_ms + 1).unwrap().contains(&id));
    assert!(Id::from_u64(u64::MAX).unix_ms(&layout).is_err());
}

#[test]
fn hexadecimal_digits_follow_the_format() {
    let id = Id::from_u64(0xab_cdef);
    assert_eq!(
        format!("{id:x} {id:X} {id:#x} {id:016x}"),
        "abcdef ABCDEF 0xabcdef 0000000000abcdef"
    );
}
