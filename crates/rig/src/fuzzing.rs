//! Fuzzing: seeds from files, damaged at random.

use std::fmt;
use std::fs;
use std::io;
use std::path::Path;

use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any, prop_oneof};
use proptest::sample::{Index, select};
use proptest::test_runner::{Config, TestError, TestRunner};

/// How many cases are tried where nobody says, in the environment.
const CASES_VARIABLE: &str = "FUZZ_CASES";
/// How often one input is hurt at most: beyond that nothing of the seed is left.
const HURTS_MAX: usize = 5;
/// Bytes that one hurt moves, removes or repeats at most.
const SPAN_MAX: usize = 64;
/// Tries to make a failing input smaller.
const SHRINKS_MAX: u32 = 4096;

/// Seeds for a parser.
#[derive(Clone, Debug)]
pub struct Corpus {
    seeds: Vec<Vec<u8>>,
}

/// An input that a check did not survive, made as small as possible.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// The input. Worth a file in the corpus.
    pub input: Vec<u8>,
    /// What happened.
    pub why: String,
}

/// One way to hurt an input.
#[derive(Clone, Debug)]
enum Hurt {
    Flip { at: Index, bit: u8 },
    CutOff { at: Index },
    Remove { at: Index, count: usize },
    Repeat { at: Index, count: usize, times: usize },
    Put { at: Index, bytes: Vec<u8> },
    Splice { other: Vec<u8>, from: Index, count: usize, at: Index },
}

impl Corpus {
    /// Every file of a directory is a seed.
    ///
    /// # Errors
    /// If it cannot be read, or has no files.
    pub fn read(directory: impl AsRef<Path>) -> io::Result<Self> {
        let mut paths = Vec::new();
        for entry in fs::read_dir(&directory)? {
            paths.push(entry?.path());
        }
        paths.sort();
        let seeds = paths.iter().map(fs::read).collect::<io::Result<Vec<_>>>()?;
        if seeds.is_empty() {
            let why = format!("{} has no seeds", directory.as_ref().display());
            return Err(io::Error::new(io::ErrorKind::NotFound, why));
        }
        Ok(Self { seeds })
    }

    /// Checks every seed as it is, and then as many hurt ones as `$FUZZ_CASES` says, or as `usual`.
    /// To panic is to fail.
    ///
    /// # Errors
    /// The smallest input that fails.
    pub fn check(&self, usual: u32, check: impl Fn(&[u8])) -> Result<(), Broken> {
        let told = std::env::var(CASES_VARIABLE).ok().and_then(|cases| cases.parse().ok());
        let config = |cases| Config {
            cases,
            failure_persistence: None,
            max_shrink_iters: SHRINKS_MAX,
            ..Config::default()
        };
        for seed in &self.seeds {
            run(config(1), &Just(seed.clone()), &check)?;
        }
        run(config(told.unwrap_or(usual)), &self.hurt(), &check)
    }

    fn hurt(&self) -> impl Strategy<Value = Vec<u8>> + use<> {
        let seeds = self.seeds.clone();
        let hurts = vec(hurt(seeds.clone()), 1..=HURTS_MAX);
        let hurt_seed = (select(seeds), hurts)
            .prop_map(|(seed, hurts)| hurts.iter().fold(seed, |bytes, hurt| hurt.apply(bytes)));
        prop_oneof![19 => hurt_seed, 1 => vec(any::<u8>(), 0..256)]
    }
}

fn run(
    config: Config,
    inputs: &impl Strategy<Value = Vec<u8>>,
    check: &impl Fn(&[u8]),
) -> Result<(), Broken> {
    let tried = TestRunner::new(config).run(inputs, |input| {
        check(&input);
        Ok(())
    });
    match tried {
        Ok(()) => Ok(()),
        Err(TestError::Fail(why, input)) => Err(Broken { input, why: why.to_string() }),
        Err(TestError::Abort(why)) => Err(Broken { input: Vec::new(), why: why.to_string() }),
    }
}

fn hurt(seeds: Vec<Vec<u8>>) -> impl Strategy<Value = Hurt> {
    let (at, count) = (any::<Index>, 1..=SPAN_MAX);
    let telling = select(b"\0\t\r\n \"%&*,-/:;=?@[\\]{}0197AZaz~\x7f\xff".to_vec());
    let byte = prop_oneof![3 => telling, 1 => any::<u8>()];
    prop_oneof![
        (at(), 0..8_u8).prop_map(|(at, bit)| Hurt::Flip { at, bit }),
        at().prop_map(|at| Hurt::CutOff { at }),
        (at(), count.clone()).prop_map(|(at, count)| Hurt::Remove { at, count }),
        (at(), count.clone(), 1..=SPAN_MAX).prop_map(|(at, count, times)| Hurt::Repeat {
            at,
            count,
            times
        }),
        (at(), vec(byte, 1..8)).prop_map(|(at, bytes)| Hurt::Put { at, bytes }),
        (select(seeds), at(), count, at()).prop_map(|(other, from, count, at)| Hurt::Splice {
            other,
            from,
            count,
            at
        }),
    ]
}

impl Hurt {
    fn apply(&self, mut bytes: Vec<u8>) -> Vec<u8> {
        let end = bytes.len() + 1;
        match self {
            Self::Flip { at, bit } => {
                if !bytes.is_empty() {
                    let at = at.index(bytes.len());
                    bytes[at] ^= 1 << bit;
                }
            }
            Self::CutOff { at } => bytes.truncate(at.index(end)),
            Self::Remove { at, count } => {
                let at = at.index(end);
                bytes.drain(at..bytes.len().min(at + count));
            }
            Self::Repeat { at, count, times } => {
                let at = at.index(end);
                let part = bytes[at..bytes.len().min(at + count)].repeat(*times);
                bytes.splice(at..at, part);
            }
            Self::Put { at, bytes: put } => {
                let at = at.index(end);
                bytes.splice(at..at, put.iter().copied());
            }
            Self::Splice { other, from, count, at } => {
                let (from, at) = (from.index(other.len() + 1), at.index(end));
                let part = other[from..other.len().min(from + count)].to_vec();
                bytes.splice(at..at, part);
            }
        }
        bytes
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { input, why } = self;
        write!(f, "{why}; for the input b\"{}\"", input.escape_ascii())
    }
}

impl std::error::Error for Broken {}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::collections::BTreeSet;

    use super::*;

    fn corpus() -> Corpus {
        Corpus { seeds: vec![b"SEED one\r\n".to_vec(), b"{\"two\":[2]}".to_vec()] }
    }

    #[test]
    fn a_parser_that_panics_is_caught_with_a_small_input() {
        let broken =
            corpus().check(20_000, |bytes| assert!(!bytes.ends_with(b"\n\n"))).unwrap_err();
        assert!(broken.input.ends_with(b"\n\n"), "{broken}");
        assert!(broken.input.len() <= 40, "not made small: {broken}");
        assert!(broken.to_string().contains("\\n\\n"), "{broken}");
    }

    #[test]
    fn seeds_are_tried_as_they_are_and_then_hurt_in_many_ways() {
        let seen = RefCell::new(BTreeSet::new());
        let note = |bytes: &[u8]| {
            seen.borrow_mut().insert(bytes.to_vec());
        };
        // Enough for the rarest of what is looked for to be near certain.
        corpus().check(40_000, note).unwrap();
        let seen = seen.into_inner();
        assert!(corpus().seeds.iter().all(|seed| seen.contains(seed)));
        assert!(seen.len() > 10_000, "{}", seen.len());
        assert!(seen.iter().any(|bytes| bytes.windows(5).any(|part| part == b"SEED{")));
    }

    #[test]
    fn a_corpus_without_seeds_is_no_corpus() {
        assert!(Corpus::read(tempfile::tempdir().unwrap().path()).is_err());
    }
}
