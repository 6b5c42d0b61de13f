//! Layouts: what is accepted, what is refused, and the text form.

use frazil_id::{EncodeError, Id, Layout, LayoutError, PRESETS, Parts, TimeError};
use proptest::prelude::*;

const EPOCH_MS: u64 = 1_704_067_200_000;

fn error(text: &str) -> LayoutError {
    text.parse::<Layout>().expect_err(text)
}

#[test]
fn a_name_or_a_text_names_a_layout() {
    for &(name, layout) in PRESETS {
        assert_eq!(name.parse(), Ok(layout));
        assert_eq!(layout.to_string().parse(), Ok(layout), "{layout}");
    }
    let plain: Layout = "time:41 worker:10 sequence:12 @1704067200000".parse().unwrap();
    assert_eq!(plain, Layout::FRAZIL);
    let coarse: Layout = "tick:2s time:32 sequence:8 @2024-01-01T01:00:00+01:00".parse().unwrap();
    assert_eq!(coarse.to_string(), "time:32 sequence:8 @2024-01-01T00:00:00Z tick:2000ms");
}

#[test]
fn a_text_that_is_no_layout_is_refused_with_its_reason() {
    use LayoutError::*;
    for (text, reason) in [
        ("", Unknown),
        ("Frazil", Unknown),
        ("snowflake", Unknown),
        ("time:41 sequence:12", NoEpoch),
        ("time:41 @yesterday", EpochText),
        ("time:41 @-1", EpochText),
        ("time:41 @1969-12-31T23:59:59Z", EpochText),
        ("time:41 @5 @6", RepeatedField),
        ("time:41 @5 tick:1", TickText),
        ("time:41 @5 tick:+1ms", TickText),
        ("time:41 @5 tick:99999999999s", TickText),
        ("time:41 @5 tick:0ms", Tick { tick_ms: 0 }),
        ("time:41 @5 tick:86401s", Tick { tick_ms: 86_401_000 }),
        ("time @5 tick:1ms", FieldText),
        ("time:+41 @5", FieldText),
        ("time:4294967296 @5", FieldText),
        ("time:41 worker:0 @5", FieldBits { bits: 0 }),
        ("time:65 @5", FieldBits { bits: 65 }),
        ("worker:10 sequence:12 @5", NoTime),
        ("worker:10 time:41 sequence:12 @5", TimeNotFirst),
        ("time:41 time:2 @5", TimeNotFirst),
        ("time:41 sequence:1 sequence:2 @5", RepeatedField),
        ("time:41 node:1 node:2 @5", RepeatedField),
        ("time:41 a:1 sequence:2 b:3 @5", WorkerSplit),
        ("time:41 a:1 b:1 c:1 d:1 e:1 @5", TooManyParts),
        ("time:41 a:1 b:1 c:1 d:1 e:1 f:1 g:1 h:1 @5", TooManyParts),
        ("time:41 Node:1 @5", FieldName),
        ("time:41 tick:7 @5", TickText),
        ("time:41 9lives:1 @5", FieldName),
        ("time:41 a_name_of_17_char:1 @5", FieldName),
        ("time:41 :1 @5", FieldName),
        ("time:41 worker:12 sequence:12 @5", TooManyBits { bits: 65 }),
        ("time:41 @253402300800000", Epoch { epoch_ms: 253_402_300_800_000 }),
        ("time:60 @5 tick:1s", TooLong),
        ("time:63 @5", TooLong),
        ("time:64 @5", TooLong),
    ] {
        assert_eq!(error(text), reason, "{text}");
    }
}

#[test]
fn a_part_cannot_have_a_name_that_the_text_form_needs() {
    for name in ["tick", "time", "sequence"] {
        let fields = [("time", 41), ("sequence", 12), (name, 5)];
        assert!(Layout::new(&fields, 5, 1).is_err(), "{name}");
    }
}

#[test]
fn an_error_names_the_value_the_limit_and_the_fix() {
    assert_eq!(
        error("time:41 worker:12 sequence:12 @5").to_string(),
        "the fields take 65 bits and an ID has 64: shorten them"
    );
    let unknown = error("snowflake").to_string();
    assert!(unknown.contains("frazil, twitter, discord"), "{unknown}");
    assert!(unknown.ends_with("`time:41 worker:10 sequence:12 @2024-01-01T00:00:00Z tick:1ms`"));
}

#[test]
fn an_id_outside_the_layout_is_refused() {
    let highest = Id::from_u64((1 << 53) - 1);
    assert!(Layout::JS53.decode(highest).is_ok());
    let above = Layout::JS53.decode(Id::from_u64(1 << 53)).unwrap_err();
    assert_eq!(
        above.to_string(),
        "ID 9007199254740992 is above 9007199254740991, the highest of a layout with 53 bits: \
         name the layout that issued it"
    );
}

#[test]
fn a_field_out_of_range_is_refused_and_its_highest_value_is_not() {
    let highest = Parts { tick: (1 << 41) - 1, worker: 1023, sequence: 4095 };
    assert_eq!(Layout::FRAZIL.encode(highest), Ok(Id::from_u64(u64::MAX >> 1)));
    for (parts, field, value, max) in [
        (Parts { tick: 1 << 41, ..highest }, "tick", 1 << 41, (1 << 41) - 1),
        (Parts { worker: 1024, ..highest }, "worker", 1024, 1023),
        (Parts { sequence: u64::MAX, ..highest }, "sequence", u64::MAX, 4095),
    ] {
        assert_eq!(Layout::FRAZIL.encode(parts), Err(EncodeError::Field { field, value, max }));
    }
}

#[test]
fn worker_parts_join_and_what_does_not_fit_is_refused() {
    let join = |values: &'static [(&'static str, u64)]| {
        Layout::DISCORD.join_worker(values.iter().copied())
    };
    assert_eq!(join(&[("worker", 1), ("process", 0)]), Ok(32));
    assert_eq!(join(&[("process", 31)]), Ok(31));
    let part = Layout::DISCORD.worker_parts()[1];
    assert_eq!(join(&[("process", 0), ("process", 2)]), Err(EncodeError::RepeatedPart { part }));
    let too_large = EncodeError::Part { part, value: 32 };
    assert_eq!(join(&[("process", 32)]), Err(too_large));
    assert_eq!(too_large.to_string(), "process 32 does not fit: the layout allows 0 to 31");
    assert_eq!(join(&[("zone", 0)]), Err(EncodeError::UnknownPart));
}

#[test]
fn the_epoch_minus_one_and_one_past_the_last_instant_are_refused() {
    for &(name, layout) in PRESETS {
        let (epoch_ms, last_ms) =
            (layout.epoch_ms().cast_signed(), layout.last_instant_ms().cast_signed());
        assert_eq!(layout.tick_at(epoch_ms), Ok(0), "{name}");
        assert_eq!(layout.tick_at(last_ms), Ok(layout.last_tick()), "{name}");
        let before = TimeError::BeforeEpoch { unix_ms: epoch_ms - 1, epoch_ms: layout.epoch_ms() };
        assert_eq!(layout.tick_at(epoch_ms - 1), Err(before), "{name}");
        assert_eq!(Id::at(&layout, epoch_ms - 1), Err(before), "{name}");
        let after =
            TimeError::AfterLast { unix_ms: last_ms + 1, last_ms: layout.last_instant_ms() };
        assert_eq!(layout.tick_at(last_ms + 1), Err(after), "{name}");
        assert!(Id::range(&layout, epoch_ms..last_ms + 1).is_ok(), "{name}");
        assert_eq!(Id::range(&layout, epoch_ms..last_ms + 2), Err(after), "{name}");
        assert!(layout.tick_at(i64::MIN).is_err());
    }
}

#[test]
fn a_range_bounds_exactly_the_ids_of_its_time() {
    let layout = Layout::FRAZIL;
    let start = EPOCH_MS.cast_signed() + 1000;
    let range = Id::range(&layout, start..start + 10).unwrap();
    let id = |tick, worker, sequence| layout.encode(Parts { tick, worker, sequence }).unwrap();
    assert!(range.contains(&id(1000, 0, 0)) && range.contains(&id(1009, 1023, 4095)));
    assert!(!range.contains(&id(999, 1023, 4095)) && !range.contains(&id(1010, 0, 0)));
    assert!(matches!(Id::range(&layout, start..start), Err(TimeError::EmptyRange { .. })));
}

/// Any layout that `Layout::new` accepts.
fn layouts() -> impl Strategy<Value = Layout> {
    let bits = (1_u32..=48, 0_u32..=16, 0_u32..=16);
    let name = prop_oneof![Just("worker".to_owned()), "[a-z_0-9]{1,16}", Just("tick".to_owned())];
    (bits, any::<bool>(), 0_u64..=4_000_000_000_000, 1_u32..=2000, name).prop_filter_map(
        "is a layout",
        |((time, worker, sequence), worker_first, epoch_ms, tick_ms, name)| {
            let mut fields = vec![(name.as_str(), worker), ("sequence", sequence)];
            fields.retain(|(_, bits)| *bits > 0);
            if !worker_first {
                fields.reverse();
            }
            fields.insert(0, ("time", time));
            Layout::new(&fields, epoch_ms, tick_ms).ok()
        },
    )
}

proptest! {
    #[test]
    fn the_text_form_is_read_back(layout in layouts()) {
        prop_assert_eq!(layout.to_string().parse(), Ok(layout));
    }

    #[test]
    fn decode_then_encode_is_the_identity(layout in layouts(), bits: u64) {
        let id = Id::from_u64(bits);
        match layout.decode(id) {
            Ok(parts) => prop_assert_eq!(layout.encode(parts), Ok(id)),
            Err(_) => prop_assert!(layout.bits() < 64 && bits >> layout.bits() > 0),
        }
    }

    #[test]
    fn ids_sort_by_tick(layout in layouts(), a: u64, b: u64) {
        let mask = u64::MAX >> (64 - layout.bits());
        let (a, b) = (Id::from_u64(a & mask), Id::from_u64(b & mask));
        let (of_a, of_b) = (layout.decode(a).unwrap(), layout.decode(b).unwrap());
        if of_a.tick < of_b.tick {
            prop_assert!(a < b);
        }
    }

    #[test]
    fn no_text_panics(text in "(time|worker|sequence|tick|@|:|[0-9]{1,20}|ms|s| |-|T|Z|\\PC){0,12}") {
        let _ = text.parse::<Layout>();
    }
}
