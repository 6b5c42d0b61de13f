//! The configuration as a server would take it, and its problems.

use frazil::StartError;
use frazil::coord::{Namespace, StoreUrl};
use frazil_doctor::{Finding, NodeSettings, flag_for};

use crate::args::ServeArgs;
use crate::config::{self, Problem, Wrong, named_file, store_url};
use crate::words::printable;

const CONFIGURATION: &str = "configuration";

/// What was found in it. The library knows best how to repair durations that clash.
pub(super) fn findings(
    flags: &ServeArgs,
    problems: &[Problem],
    clash: Option<&StartError>,
) -> Vec<Finding> {
    if problems.is_empty() {
        return vec![Finding::ok(CONFIGURATION, source(flags))];
    }
    let finding = |problem: &Problem| {
        Finding::fail(CONFIGURATION, problem.to_string(), fix_of(problem, clash))
    };
    problems.iter().map(finding).collect()
}

/// What kept it from being read at all.
pub(super) fn unreadable(wrong: &Wrong) -> Vec<Finding> {
    let fix = "name a file that this user can read: --config FILE";
    wrong.lines().into_iter().map(|line| Finding::fail(CONFIGURATION, line, fix)).collect()
}

/// Whether the durations go together, unless the configuration's problems say it.
pub(super) fn timing(
    node: &NodeSettings,
    clash: Option<&StartError>,
    problems: &[Problem],
) -> Finding {
    let is_said = |clash: &StartError| {
        let what = clash.to_string();
        problems.iter().any(|problem| problem.says(&what))
    };
    match clash.is_some_and(is_said) {
        true => Finding::skipped("timing", "see configuration"),
        false => frazil_doctor::timing(node, clash),
    }
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

fn fix_of(problem: &Problem, clash: Option<&StartError>) -> String {
    let culprit = problem.culprit();
    match clash.filter(|clash| problem.says(&clash.to_string())).map(flag_for) {
        Some(fix) if culprit.starts_with("--") => fix,
        Some(fix) => format!("{fix}; or the same in {culprit}"),
        None => format!("correct {culprit}; frazil config example explains every key"),
    }
}

/// The node as it would be started, or what is wrong with the store's URL.
pub(super) fn node(args: &ServeArgs) -> Result<NodeSettings, String> {
    let url = store_url(args)?;
    Ok(NodeSettings {
        flags: flags(args, &url),
        url,
        namespace: args.place.namespace.clone(),
        layout: args.layout.layout,
        timing: config::timing(args),
        workers: args.workers.workers,
    })
}

/// The flags that lead another command to the same namespace.
fn flags(args: &ServeArgs, url: &StoreUrl) -> String {
    let mut flags = String::new();
    let is_named = args.place.store.is_some() || args.worker.is_some();
    // A URL with a login is not printed as it is, so a copy of it would not work.
    if is_named && url.user.is_none() && url.password.is_none() {
        let text = url.to_string();
        let is_plain = text.chars().all(|c| c.is_ascii_alphanumeric() || "+:/.,-_[]%=".contains(c));
        flags += &if is_plain { format!(" --store {text}") } else { format!(" --store '{text}'") };
    }
    if args.place.namespace != Namespace::default() {
        flags += &format!(" --namespace {}", args.place.namespace);
    }
    flags
}
