//! Files that nobody would write: each gets a verdict that a plain reading of it agrees with.

use std::collections::HashSet;

use frazil_id::{Id, Layout};
use frazil_rig::Corpus;

use super::desk::{AuditReport, Desk, objects};

/// A few seconds: each case is two processes.
const USUAL: u32 = 150;

fn corpus() -> Corpus {
    Corpus::read(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus/audit")).unwrap()
}

/// How many IDs, duplicates and others a file has, found by another way.
fn count(ids: impl Iterator<Item = Option<Id>>) -> [usize; 4] {
    let mut seen = HashSet::new();
    let (mut checked, mut again, mut outside, mut malformed) = (0, 0, 0, 0);
    for id in ids {
        match id {
            None => malformed += 1,
            Some(id) if id.parts(&Layout::FRAZIL).is_err() => outside += 1,
            Some(id) => again += usize::from(!seen.insert(id)),
        }
        checked += usize::from(id.is_some());
    }
    [checked, again, outside, malformed]
}

fn by_lines(bytes: &[u8]) -> [usize; 4] {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let lines = bytes.split(|byte| *byte == b'\n');
    let lines = lines.map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    let lines = lines.filter(|line| !line.is_empty());
    count(lines.map(|line| str::from_utf8(line).ok().and_then(|line| line.parse().ok())))
}

fn by_eights(bytes: &[u8]) -> [usize; 4] {
    let ids = bytes.chunks(8);
    count(ids.map(|id| id.try_into().ok().map(|id| Id::from_u64(u64::from_be_bytes(id)))))
}

fn agrees(told: &AuditReport, expected: [usize; 4]) {
    let verdict = objects(&told.stdout).pop().expect("there is a verdict");
    let counts = ["checked", "duplicates", "outside", "malformed"]
        .map(|key| usize::try_from(verdict[key].as_u64().unwrap()).unwrap());
    assert_eq!(counts, expected, "{}{}", told.stdout, told.stderr);
    let [_, again, outside, malformed] = expected;
    let code = if again + outside > 0 { 1 } else { 2 * i32::from(malformed > 0) };
    assert_eq!(told.code, Some(code), "{}{}", told.stdout, told.stderr);
    let steers = |c: char| c.is_control() && c != '\n';
    assert!(!told.stderr.contains(steers), "{:?}", told.stderr);
}

#[test]
fn any_file_gets_the_verdict_of_a_plain_reading() {
    let desk = Desk::new();
    let checked = corpus().check(USUAL, |bytes| {
        desk.write("ids", bytes);
        agrees(&desk.audit(&["--json", "ids"]), by_lines(bytes));
        agrees(&desk.audit(&["--json", "--binary", "ids"]), by_eights(bytes));
    });
    checked.unwrap_or_else(|broken| panic!("{broken}"));
}

/// Reading as it must not be: every line is trusted to be a number.
#[test]
fn a_reader_that_panics_is_caught() {
    let naive = |bytes: &[u8]| {
        for line in String::from_utf8_lossy(bytes).lines().filter(|line| !line.is_empty()) {
            assert!(line.parse::<u64>().is_ok(), "{line}");
        }
    };
    assert!(corpus().check(USUAL, naive).is_err());
}
