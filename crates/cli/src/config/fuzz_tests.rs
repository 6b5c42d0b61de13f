//! Files that nobody would write: each is a configuration, or told what is wrong with it and where.

use std::path::Path;

use clap::FromArgMatches;
use frazil_rig::Corpus;

use super::*;

/// A few seconds: each case parses a command line too.
const USUAL: u32 = 400;

fn corpus() -> Corpus {
    Corpus::read(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus/config")).unwrap()
}

fn flags(file: &Path) -> ServeArgs {
    let file = file.to_str().unwrap();
    let matches = layers::bare_command().get_matches_from(["frazil", "--config", file]);
    ServeArgs::from_arg_matches(&matches).unwrap()
}

#[test]
fn a_file_is_a_configuration_or_told_what_is_wrong_with_it() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("frazil.toml");
    let flags = flags(&file);
    let checked = corpus().check(USUAL, |bytes| {
        std::fs::write(&file, bytes).unwrap();
        match load(&flags, Files::Ignore) {
            Ok(settings) => {
                server_config(&settings.args, None).unwrap();
            }
            Err(wrong) => {
                let lines = wrong.lines();
                assert!(!lines.is_empty(), "wrong, and nobody says why");
                let is_line = |line: &String| !line.contains(char::is_control);
                assert!(lines.iter().all(is_line), "{lines:?}");
            }
        }
    });
    checked.unwrap_or_else(|broken| panic!("{broken}"));
}

/// Reading as it must not be: a value that is no text is trusted to be one.
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
