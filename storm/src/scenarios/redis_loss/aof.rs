//! Redis's append-only file: how long it was when, and where its commands end.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::clock;

const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Writes down how long the file is, all the time.
#[derive(Debug)]
pub(super) struct Watch {
    path: PathBuf,
    lengths: Arc<Mutex<Vec<(Duration, u64)>>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    /// Of the server with this directory.
    pub(super) fn start(directory: &Path) -> io::Result<Self> {
        let path = newest(&directory.join("appendonlydir"))?;
        let lengths = Arc::new(Mutex::new(Vec::new()));
        let stop = Arc::new(AtomicBool::new(false));
        let watched = (path.clone(), Arc::clone(&lengths), Arc::clone(&stop));
        let thread = thread::Builder::new().name("storm-aof".to_owned()).spawn(move || {
            let (path, lengths, stop) = watched;
            // Relaxed: nothing is published by it.
            while !stop.load(Ordering::Relaxed) {
                if let Ok(found) = fs::metadata(&path) {
                    let mut lengths = lengths.lock().unwrap_or_else(PoisonError::into_inner);
                    lengths.push((clock::now(), found.len()));
                }
                clock::rest(LOOK_EVERY);
            }
        })?;
        Ok(Self { path, lengths, stop, thread: Some(thread) })
    }

    /// How long it was at a moment, if that is known.
    pub(super) fn length_at(&self, moment: Duration) -> Option<u64> {
        let lengths = self.lengths.lock().unwrap_or_else(PoisonError::into_inner);
        length_at(&lengths, moment)
    }

    /// Cuts it back to the last whole command that it had at a length. How many commands are gone.
    pub(super) fn cut_back(&self, length: u64) -> io::Result<u64> {
        let bytes = fs::read(&self.path)?;
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        let end = ends(&bytes).take_while(|end| *end <= length).last().unwrap_or(0);
        let gone = ends(&bytes).filter(|gone| *gone > end).count() as u64;
        fs::File::options().write(true).open(&self.path)?.set_len(end as u64)?;
        Ok(gone)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // Relaxed: nothing is published by it.
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic of it would have been a missing length.
            let _ = thread.join();
        }
    }
}

/// The file that is appended to.
fn newest(directory: &Path) -> io::Result<PathBuf> {
    let files = fs::read_dir(directory)?.flatten().map(|entry| entry.path());
    let parts = files.filter(|path| path.to_string_lossy().ends_with(".incr.aof"));
    parts.max().ok_or_else(|| io::Error::other("Redis has no append-only file"))
}

fn length_at(lengths: &[(Duration, u64)], moment: Duration) -> Option<u64> {
    lengths.iter().rev().find(|(at, _)| *at <= moment).map(|(_, length)| *length)
}

/// Where each command ends; of a transaction, its last.
fn ends(bytes: &[u8]) -> impl Iterator<Item = usize> {
    let (mut at, mut is_within) = (0, false);
    std::iter::from_fn(move || {
        loop {
            let (end, name) = command(bytes, at)?;
            at = end;
            is_within = match name.to_ascii_uppercase().as_slice() {
                b"MULTI" => true,
                b"EXEC" => false,
                _ => is_within,
            };
            if !is_within {
                return Some(end);
            }
        }
    })
}

/// The end and the name of the command at a place; none if there is no whole one.
fn command(bytes: &[u8], at: usize) -> Option<(usize, &[u8])> {
    let (line, mut at) = line(bytes, at)?;
    // A note of the time.
    if line.starts_with(b"#") {
        return Some((at, b""));
    }
    let count: usize = number(line.strip_prefix(b"*")?)?;
    let mut name = None;
    for _ in 0..count {
        let (head, begin) = self::line(bytes, at)?;
        let end = begin + number(head.strip_prefix(b"$")?)?;
        name.get_or_insert(bytes.get(begin..end)?);
        at = end + 2;
    }
    (at <= bytes.len()).then_some((at, name?))
}

/// The line at a place without its end, and where the next begins.
fn line(bytes: &[u8], at: usize) -> Option<(&[u8], usize)> {
    let rest = bytes.get(at..)?;
    let length = rest.iter().position(|byte| *byte == b'\n')?;
    Some((rest[..length].trim_ascii_end(), at + length + 1))
}

fn number(text: &[u8]) -> Option<usize> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &[u8] = b"*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n#TS:1\r\n*1\r\n$5\r\nMULTI\r\n\
        *3\r\n$3\r\nSET\r\n$1\r\na\r\n$2\r\n\r\n\r\n*1\r\n$4\r\nEXEC\r\n*2\r\n$4\r\nINCR\r\n$1\r\nb\r\n";

    #[test]
    fn commands_end_where_nothing_is_torn() {
        let ends = |length: usize| super::ends(&FILE[..length]).collect::<Vec<_>>();
        assert_eq!(ends(FILE.len()), [23, 30, 87, 108]);
        assert_eq!(FILE.len(), 108);
        assert_eq!(ends(107), [23, 30, 87], "half a command");
        assert_eq!(ends(86), [23, 30], "half a transaction");
        assert_eq!(ends(5), Vec::<usize>::new());
    }

    #[test]
    fn a_length_is_the_one_that_was_seen_before() {
        let lengths = [(1, 10), (3, 30)].map(|(at, length)| (Duration::from_secs(at), length));
        let at = |second| length_at(&lengths, Duration::from_secs(second));
        assert_eq!(
            [at(0), at(1), at(2), at(3), at(9)],
            [None, Some(10), Some(10), Some(30), Some(30)]
        );
    }
}
