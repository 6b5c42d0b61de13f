//! The public API of each published crate, compared with `api/CRATE.txt`.
//!
//! ```text
//! api check      what differs; changes nothing
//! api renew      writes the files anew
//! api self-test  shows that a difference is found
//! ```

mod difference;
mod documented;

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use crate::difference::Difference;
use crate::documented::Library;

type Fallible<T> = Result<T, Box<dyn std::error::Error>>;

const RENEW: &str =
    "If it is meant, `make api` writes the files anew: commit them, with CHANGELOG.md.";

#[expect(clippy::print_stderr, reason = "a tool for developers")]
fn main() -> ExitCode {
    let task = std::env::args().nth(1);
    let outcome = match task.as_deref() {
        Some("check") => check(),
        Some("renew") => renew(),
        Some("self-test") => self_test(),
        _ => Err("say what to do: check, renew or self-test".into()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("api: {why}");
            ExitCode::FAILURE
        }
    }
}

fn check() -> Fallible<()> {
    let mut findings = String::new();
    for library in documented::libraries()? {
        let kept = fs::read_to_string(file(&library)).unwrap_or_default();
        let api = library.api()?;
        let difference = Difference::between(&kept, &api);
        if !difference.is_empty() {
            findings += &format!("{} has changed:\n{difference}", library.name);
        }
    }
    if findings.is_empty() { Ok(()) } else { Err(format!("{findings}{RENEW}").into()) }
}

fn renew() -> Fallible<()> {
    for library in documented::libraries()? {
        fs::create_dir_all(root().join("api"))?;
        fs::write(file(&library), library.api()?)?;
    }
    Ok(())
}

/// Takes something from what is kept of a crate, and adds something: both must be found, and nothing else.
fn self_test() -> Fallible<()> {
    let mut tested = 0;
    for entry in fs::read_dir(root().join("api"))? {
        let path = entry?.path();
        let whole = fs::read_to_string(&path)?;
        let (first, rest) = whole.split_once('\n').ok_or("an empty file keeps nothing")?;
        let added = "pub fn added::by_the_test()";
        let changed = format!("{rest}{added}\n");
        let found = Difference::between(&whole, &changed);
        let is_found =
            (found.gone.as_slice(), found.new.as_slice()) == (&[first][..], &[added][..]);
        if !is_found || !Difference::between(&whole, &whole).is_empty() {
            return Err(format!("a difference from {} is not found", path.display()).into());
        }
        tested += 1;
    }
    if tested == 0 { Err("there is no file to test with".into()) } else { Ok(()) }
}

fn file(library: &Library) -> PathBuf {
    root().join("api").join(format!("{}.txt", library.name))
}

fn root() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}
