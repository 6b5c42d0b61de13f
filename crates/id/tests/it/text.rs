//! The text forms: one text for each ID, and nothing else is read.

use frazil_id::{Format, Id, ParseIdError};
use proptest::prelude::*;

const EDGES: [u64; 14] = [
    0,
    1,
    9,
    10,
    61,
    62,
    99,
    100,
    999,
    1 << 53,
    u64::MAX / 10,
    u64::MAX >> 1,
    u64::MAX - 1,
    u64::MAX,
];

fn texts(bits: u64) -> Vec<String> {
    Format::ALL.iter().map(|format| Id::from_u64(bits).text(*format).to_string()).collect()
}

#[test]
fn known_texts() {
    assert_eq!(
        texts(175_928_847_299_117_063),
        [
            "175928847299117063",
            "271065ac1020007",
            "4W86BB0G4007",
            "Czks0tP37X",
            "04W86BB0G4007",
            "0Czks0tP37X",
        ]
    );
    assert_eq!(texts(0), ["0", "0", "0", "0", "0000000000000", "00000000000"]);
    assert_eq!(
        texts(u64::MAX),
        [
            "18446744073709551615",
            "ffffffffffffffff",
            "FZZZZZZZZZZZZ",
            "LygHa16AHYF",
            "FZZZZZZZZZZZZ",
            "LygHa16AHYF",
        ]
    );
}

#[test]
fn what_is_not_canonical_is_refused_with_its_reason() {
    use ParseIdError::*;
    let letter = |letter, at| InvalidLetter { letter, at };
    for (format, text, reason) in [
        (Format::Decimal, "", Empty),
        (Format::Decimal, "007", LeadingZero),
        (Format::Decimal, "00", LeadingZero),
        (Format::Decimal, "+7", letter('+', 0)),
        (Format::Decimal, "-7", letter('-', 0)),
        (Format::Decimal, " 7", letter(' ', 0)),
        (Format::Decimal, "7\n", letter('\n', 1)),
        (Format::Decimal, "1_000", letter('_', 1)),
        (Format::Decimal, "7\u{0661}", letter('\u{0661}', 1)),
        (Format::Decimal, "18446744073709551616", TooLarge),
        (Format::Decimal, "99999999999999999999999", TooLarge),
        (Format::Hex, "0x7", LeadingZero),
        (Format::Hex, "FF", letter('F', 0)),
        (Format::Hex, "10000000000000000", TooLarge),
        (Format::Base32, "abc", letter('a', 0)),
        (Format::Base32, "1I", letter('I', 1)),
        (Format::Base32, "1O", letter('O', 1)),
        (Format::Base32, "G000000000000", TooLarge),
        (Format::Base62, "a-b", letter('-', 1)),
        (Format::Base62, "LygHa16AHYG", TooLarge),
        (Format::Base32Sortable, "", WrongLength { expected: 13, found: 0 }),
        (Format::Base32Sortable, "4W86W1P21807", WrongLength { expected: 13, found: 12 }),
        (Format::Base32Sortable, "ZZZZZZZZZZZZZ", TooLarge),
        (Format::Base62Sortable, "000000000000", WrongLength { expected: 11, found: 12 }),
        (Format::Base62Sortable, "zzzzzzzzzzz", TooLarge),
    ] {
        assert_eq!(Id::parse(text, format), Err(reason), "{format} {text:?}");
    }
}

#[test]
fn display_is_decimal_and_takes_a_width() {
    let id = Id::from_u64(42);
    assert_eq!(format!("{id} {id:>6} {id:06} {id:?}"), "42     42 000042 Id(42)");
    assert_eq!("42".parse(), Ok(id));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn every_form_reads_back(bits in prop_oneof![any::<u64>(), prop::sample::select(&EDGES[..])]) {
        for &format in Format::ALL {
            let id = Id::from_u64(bits);
            prop_assert_eq!(Id::parse(&id.text(format), format), Ok(id));
        }
    }

    #[test]
    fn what_is_read_is_written_back(text in prop_oneof![
        "[0-9]{0,21}", "[0-9a-f]{0,17}", "[0-9A-HJKMNP-TV-Z]{0,14}", "[0-9A-Za-z]{0,12}", "[ +-]?[0-9]{1,3} ?",
    ]) {
        for &format in Format::ALL {
            if let Ok(id) = Id::parse(&text, format) {
                prop_assert_eq!(id.text(format).to_string(), text.as_str());
            }
        }
    }

    #[test]
    fn no_text_panics(text in "\\PC{0,30}") {
        for &format in Format::ALL {
            let _ = Id::parse(&text, format);
        }
    }

    #[test]
    fn sortable_forms_sort_as_ids_do(a: u64, b: u64) {
        for format in [Format::Base32Sortable, Format::Base62Sortable] {
            let (text_a, text_b) = (Id::from_u64(a).text(format), Id::from_u64(b).text(format));
            prop_assert_eq!(a.cmp(&b), text_a.as_str().cmp(text_b.as_str()));
        }
    }

    #[test]
    fn the_forms_agree_with_the_usual_crates(bits: u64) {
        let id = Id::from_u64(bits);
        prop_assert_eq!(id.text(Format::Decimal).to_string(), bits.to_string());
        prop_assert_eq!(id.text(Format::Hex).to_string(), format!("{bits:x}"));
        prop_assert_eq!(id.text(Format::Base62).to_string(), base62::encode(bits));
        prop_assert_eq!(id.text(Format::Base32Sortable).to_string(), crockford(bits));
    }
}

/// Crockford's base 32 by data-encoding: 65 bits, of which the first is 0.
fn crockford(bits: u64) -> String {
    let mut specification = data_encoding::Specification::new();
    specification.symbols.push_str("0123456789ABCDEFGHJKMNPQRSTVWXYZ");
    let encoding = specification.encoding().unwrap();
    // Ten bytes make sixteen letters, without padding.
    let text = encoding.encode(&u128::from(bits).to_be_bytes()[6..]);
    text[3..].to_owned()
}
