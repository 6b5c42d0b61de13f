//! The console blocks of README and docs, typed as a reader would type them: each command must do what its
//! page shows.
//!
//! A comment on the line before a block may say more about it, with a comma between two marks:
//! `<!-- console: with a server, exit 1 -->`.
//!
//! | mark | |
//! |---|---|
//! | `not run: REASON` | the block is only shown |
//! | `with a server` | `frazil serve` runs meanwhile, on its usual ports as the page names them |
//! | `exact` | the output is the same each time; without it a number stands for any number |
//! | `exit N` | the last command ends with N |
//! | `runs on` | the last command is ended when it has printed what the page shows |

mod page;
mod pattern;
mod terminal;

use std::fs;
use std::path::{Path, PathBuf};

use page::Block;
use terminal::Terminal;

fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let docs = fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let mut pages: Vec<_> =
        docs.filter(|path| path.extension().is_some_and(|extension| extension == "md")).collect();
    pages.push(root.join("README.md"));
    pages.sort();
    pages
}

#[test]
fn every_console_block_of_the_documentation_does_what_it_shows() {
    let terminal = Terminal::new();
    let (mut run, mut wrong) = (0, Vec::new());
    for path in pages() {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        for block in page::blocks(&fs::read_to_string(&path).unwrap()).unwrap() {
            if block.marks.not_run.is_some() {
                continue;
            }
            run += 1;
            if let Err(problem) = terminal.play(&block) {
                wrong.push(format!("{name}:{}: {problem}", block.line));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    assert!(run > 10, "only {run} blocks were run: are they found at all?");
}

/// One block of a page that is not in the documentation.
fn block(text: &str) -> Block {
    page::blocks(text).unwrap().remove(0)
}

#[test]
fn a_block_that_shows_what_does_not_happen_is_found_out() {
    let terminal = Terminal::new();
    let problem = |text: &str| terminal.play(&block(text)).unwrap_err();
    let shows_less = "```console\n$ echo one; echo two\none\n```\n";
    assert!(problem(shows_less).contains("two"));
    let fails = "```console\n$ frazil decode x\n```\n";
    assert!(problem(fails).contains("exit code 2"));
    let other_number = "<!-- console: exact -->\n```console\n$ echo 7\n8\n```\n";
    assert!(problem(other_number).contains('7'));
    let succeeds = "<!-- console: exit 3 -->\n```console\n$ true\n```\n";
    assert!(problem(succeeds).contains("exit code 0"));
    let fails_early = "```console\n$ false\n$ true\n```\n";
    assert!(problem(fails_early).contains("`false`"));
}

#[test]
fn a_block_that_is_not_run_says_why() {
    assert!(page::blocks("<!-- console: not run: -->\n```console\n$ x\n```\n").is_err());
    assert!(page::blocks("<!-- console: sideways -->\n```console\n$ x\n```\n").is_err());
    assert!(page::blocks("```console\n$ x\n").is_err());
    let block = block("<!-- console: not run: it installs packages -->\n```console\n$ x\n```\n");
    assert_eq!(block.marks.not_run.as_deref(), Some("it installs packages"));
}
