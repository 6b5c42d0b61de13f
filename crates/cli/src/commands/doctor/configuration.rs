//! The problems of the configuration, as `frazil config check` tells them.

use frazil::StartError;

use super::report::Row;
use super::timing;
use crate::args::ServeArgs;
use crate::config::{Problem, Wrong, named_file};
use crate::words::printable;

const CHECK: &str = "configuration";

/// What was found in it. The library knows best how to repair durations that clash.
pub(super) fn rows(
    flags: &ServeArgs,
    problems: &[Problem],
    clash: Option<&StartError>,
) -> Vec<Row> {
    if problems.is_empty() {
        return vec![Row::ok(CHECK, source(flags))];
    }
    let row = |problem: &Problem| Row::fail(CHECK, problem.to_string(), fix(problem, clash));
    problems.iter().map(row).collect()
}

/// What kept it from being read at all.
pub(super) fn unreadable(wrong: &Wrong) -> Vec<Row> {
    let fix = "name a file that this user can read: --config FILE";
    wrong.lines().into_iter().map(|line| Row::fail(CHECK, line, fix)).collect()
}

fn source(flags: &ServeArgs) -> String {
    match named_file(flags) {
        Some(file) => {
            let file = printable(&file.display().to_string());
            format!("{file} was read; with the environment and the flags it makes sense")
        }
        None => "no file is named; the environment and the flags make sense".to_owned(),
    }
}

fn fix(problem: &Problem, clash: Option<&StartError>) -> String {
    let culprit = problem.culprit();
    match clash.filter(|clash| problem.says(&clash.to_string())).map(timing::fix) {
        Some(fix) if culprit.starts_with("--") => fix,
        Some(fix) => format!("{fix}; or the same in {culprit}"),
        None => format!("correct {culprit}; frazil config example explains every key"),
    }
}
