//! A guarded file.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;

use frazil_coord::Token;
use frazil_election::fence::{FenceError, FencedFile, WriteOutcome};
use tempfile::TempDir;

use super::{Register, faults};

struct Guarded {
    directory: TempDir,
    /// Lets a write through in a way that it should not.
    cheat: fn(&FencedFile, &PathBuf, Token, &str) -> Option<bool>,
}

impl Guarded {
    fn new(cheat: fn(&FencedFile, &PathBuf, Token, &str) -> Option<bool>) -> Self {
        Self { directory: tempfile::tempdir().unwrap(), cheat }
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("guarded")
    }
}

impl Register for Guarded {
    fn write(&mut self, token: Token, value: &str) -> bool {
        let file = FencedFile::new(self.path());
        (self.cheat)(&file, &self.path(), token, value)
            .unwrap_or_else(|| file.write(token, value.as_bytes()).unwrap().is_accepted())
    }

    fn value(&mut self) -> String {
        fs::read_to_string(self.path()).unwrap()
    }
}

#[test]
fn a_file_is_written_under_its_highest_token_only() {
    assert_eq!(faults(&mut Guarded::new(|_, _, _, _| None)), [""; 0]);
}

#[test]
fn files_without_a_proper_fence_are_found_out() {
    let unguarded = faults(&mut Guarded::new(|_, path, _, value| {
        fs::write(path, value).unwrap();
        Some(true)
    }));
    assert!(unguarded.contains(&"a lower token is refused"), "{unguarded:?}");
    let forgetful = faults(&mut Guarded::new(|_, path, _, _| {
        let _ = fs::remove_file(path.with_extension("fence"));
        let _ = fs::remove_file(path.with_extension("lock"));
        None
    }));
    assert!(forgetful.contains(&"a higher token raises the fence"), "{forgetful:?}");
}

#[test]
fn the_fence_is_raised_without_a_write() {
    let directory = tempfile::tempdir().unwrap();
    let file = FencedFile::new(directory.path().join("guarded"));
    assert_eq!(file.highest().unwrap(), Token(0));
    assert_eq!(file.raise(Token(8)).unwrap(), WriteOutcome::Accepted);
    assert_eq!(file.write(Token(7), b"").unwrap(), WriteOutcome::Refused { highest: Token(8) });
    assert_eq!(file.highest().unwrap(), Token(8));
    assert!(!directory.path().join("guarded").exists());
}

#[test]
fn a_fence_that_was_removed_or_damaged_lets_nobody_in() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("guarded");
    let file = FencedFile::new(&path);
    assert!(file.write(Token(8), b"8").unwrap().is_accepted());
    let fence = path.with_extension("fence");
    for damage in [None, Some("eight"), Some(""), Some("-1")] {
        match damage {
            Some(text) => fs::write(&fence, text).unwrap(),
            None => fs::remove_file(&fence).unwrap(),
        }
        let refused = file.write(Token(9), b"9").unwrap_err();
        assert!(matches!(refused, FenceError::Lost { .. }), "{refused}");
        assert!(refused.to_string().contains("write the token"), "{refused}");
    }
    fs::write(&fence, "8\n").unwrap();
    assert!(file.write(Token(9), b"9").unwrap().is_accepted());
    let nowhere = FencedFile::new(directory.path().join("nowhere/guarded"));
    assert!(matches!(nowhere.raise(Token(1)), Err(FenceError::Io { .. })));
}

#[test]
fn of_many_who_write_at_once_the_highest_token_is_left() {
    let directory = tempfile::tempdir().unwrap();
    let path = Arc::new(directory.path().join("guarded"));
    let writers: Vec<_> = (0..8_u64)
        .map(|writer| {
            let path = path.clone();
            thread::spawn(move || {
                for round in 0..20_u64 {
                    // All come by at different heights, some of them late.
                    let token = Token(1 + (round * 7 + writer * 5) % 97);
                    let file = FencedFile::new(path.as_path());
                    let outcome = file.write(token, token.to_string().as_bytes()).unwrap();
                    let seen: u64 = fs::read_to_string(path.as_path()).unwrap().parse().unwrap();
                    assert!(seen >= token.0, "{seen} after {token}: {outcome:?}");
                }
            })
        })
        .collect();
    for writer in writers {
        writer.join().unwrap();
    }
    let highest = (0..20).flat_map(|r| (0..8).map(move |w| 1 + (r * 7 + w * 5) % 97)).max();
    assert_eq!(fs::read_to_string(path.as_path()).unwrap(), highest.unwrap().to_string());
}
