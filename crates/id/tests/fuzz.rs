//! Texts that nobody would write: no parser panics, and what one reads it writes the same way.
//! `FUZZ_CASES=1000000 cargo test -p frazil-id --test fuzz` tries more of them.

use frazil_id::{Format, Id, Layout, rfc3339};
use frazil_rig::Corpus;

/// A few seconds.
const USUAL: u32 = 5_000;

fn corpus(name: &str) -> Corpus {
    let corpora = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus");
    Corpus::read(format!("{corpora}/{name}")).unwrap()
}

#[test]
fn the_text_of_an_id_is_read_one_way_or_not_at_all() {
    let checked = corpus("id_text").check(USUAL, |bytes| {
        let text = String::from_utf8_lossy(bytes);
        for &format in Format::ALL {
            if let Ok(id) = Id::parse(&text, format) {
                assert_eq!(id.text(format).as_str(), text, "{format}");
            }
        }
    });
    checked.unwrap_or_else(|broken| panic!("{broken}"));
}

#[test]
fn a_layout_that_is_read_prints_as_itself() {
    let checked = corpus("layout_text").check(USUAL, |bytes| {
        let text = String::from_utf8_lossy(bytes);
        let Ok(layout) = text.parse::<Layout>() else { return };
        let printed = layout.to_string();
        assert_eq!(printed.parse(), Ok(layout), "{printed}");
        for id in [0, 1, u64::MAX, u64::MAX >> 1] {
            let Ok(parts) = Id::from_u64(id).parts(&layout) else { continue };
            assert_eq!(layout.encode(parts).map(Id::to_u64), Ok(id), "{printed}");
        }
    });
    checked.unwrap_or_else(|broken| panic!("{broken}"));
}

#[test]
fn a_time_that_is_read_prints_as_itself() {
    let checked = corpus("rfc3339").check(USUAL, |bytes| {
        let text = String::from_utf8_lossy(bytes);
        let Ok(instant) = text.parse::<rfc3339::Instant>() else { return };
        let printed = instant.to_string();
        let again = printed.parse::<rfc3339::Instant>();
        assert_eq!(again.map(rfc3339::Instant::unix_ms), Ok(instant.unix_ms()), "{printed}");
    });
    checked.unwrap_or_else(|broken| panic!("{broken}"));
}

/// A parser as it must not be: it trusts that a colon has something behind it.
#[test]
fn a_parser_that_panics_is_caught() {
    let naive = |bytes: &[u8]| {
        if let Some(colon) = bytes.iter().position(|byte| *byte == b':') {
            assert!(bytes[colon + 1] != 0);
        }
    };
    let broken = corpus("layout_text").check(USUAL, naive).unwrap_err();
    assert!(broken.input.ends_with(b":") || broken.input.contains(&0), "{broken}");
}
