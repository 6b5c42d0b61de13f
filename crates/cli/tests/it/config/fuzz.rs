//! Files that nobody would write: each is a configuration, or told what is wrong with it.

use frazil_rig::Corpus;

use crate::desk::Desk;

/// A few seconds: each case is a process.
const USUAL: u32 = 250;

fn corpus() -> Corpus {
    Corpus::read(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus/config")).unwrap()
}

#[test]
fn a_file_is_a_configuration_or_told_what_is_wrong_with_it() {
    let desk = Desk::new();
    let checked = corpus().check(USUAL, |bytes| {
        std::fs::write(desk.file(), bytes).unwrap();
        let (code, said) = desk.check(&["--offline"]);
        assert!(matches!(code, Some(0..=2)), "{code:?}: {said:?}");
        assert!(!said.is_empty(), "nothing is said");
        assert!(!said.iter().any(|line| line.contains(char::is_control)), "{said:?}");
    });
    checked.unwrap_or_else(|broken| panic!("{broken}"));
}

/// Reading as it must not be: a value is trusted to be a text.
#[test]
fn a_reader_that_panics_is_caught() {
    let naive = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes);
        if let Some((_, value)) = text.lines().find_map(|line| line.split_once('=')) {
            assert!(value.trim().starts_with('"'), "{value}");
        }
    };
    assert!(corpus().check(USUAL, naive).is_err());
}
