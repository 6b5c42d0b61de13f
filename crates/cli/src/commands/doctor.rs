//! `frazil doctor`: is all as it should be, and if not, what repairs it?
//!
//! A check looks and gives rows; it never writes, neither to the store nor to the disk.

mod configuration;
mod files;
mod host;
mod namespace;
mod occupant;
mod report;
mod served;
mod store;

use self::configuration::Case;
use self::report::{Report, Row};
use super::place;
use crate::args::{DoctorArgs, ServeArgs};
use crate::config::{self, Examined, Files};
use crate::output::Failure;

pub(crate) fn run(args: &DoctorArgs) -> Result<(), Failure> {
    let runtime = place::runtime()?;
    let outcome = runtime.block_on(examine(args));
    // A check that hangs in the system is not waited for.
    runtime.shutdown_background();
    outcome
}

async fn examine(args: &DoctorArgs) -> Result<(), Failure> {
    let mut report = Report::new(args.json);
    report.add(vec![host::kernel_clock_row()])?;
    match config::examine(&args.serve, Files::Look) {
        Ok(examined) if examined.is_whole => {
            examine_node(&args.serve, &examined, &mut report).await?;
        }
        unknown => {
            report.add(match unknown {
                Ok(Examined { problems, .. }) => configuration::rows(&args.serve, &problems, None),
                Err(wrong) => configuration::unreadable(&wrong),
            })?;
            let rest = ["files", "descriptors"].into_iter().chain(host::LISTENERS);
            let all = ["lifetime", "store"].into_iter().chain(STORE_CHECKS).chain(rest);
            skip(&mut report, all, "the configuration is not known")?;
        }
    }
    if let Some(url) = args.server.server.as_deref().filter(|url| !url.is_empty()) {
        report.check("server", served::look(url, &args.server)).await?;
    }
    report.finish()
}

/// The checks that need the store's URL.
const STORE_CHECKS: [&str; 7] =
    ["timing", "login", "directory", "store-clock", "guarantees", "namespace", "pool"];
/// Those of them that need an answer of the store.
const ANSWER_CHECKS: [&str; 4] = ["store-clock", "guarantees", "namespace", "pool"];

fn skip(
    report: &mut Report,
    checks: impl IntoIterator<Item = &'static str>,
    why: &str,
) -> Result<(), Failure> {
    report.add(checks.into_iter().map(|check| Row::skipped(check, why)).collect())
}

async fn examine_node(
    flags: &ServeArgs,
    examined: &Examined,
    report: &mut Report,
) -> Result<(), Failure> {
    let (args, problems) = (&examined.settings.args, &examined.problems);
    let case = Case::of(args);
    let clash = case.as_ref().ok().filter(|_| !args.dev).and_then(configuration::clash);
    report.add(configuration::rows(flags, problems, clash.as_ref()))?;
    report.add(vec![configuration::lifetime_row(&args.layout.layout)])?;
    match case {
        _ if args.dev => {
            let why = "a server with --dev makes a store of its own";
            skip(report, STORE_CHECKS.into_iter().chain(["store"]), why)?;
        }
        _ if ["store.url", "store.namespace"].iter().any(|key| examined.left_out(key)) => {
            let why = "which one is not known: see configuration";
            skip(report, STORE_CHECKS.into_iter().chain(["store"]), why)?;
        }
        Ok(case) => {
            report.add(vec![configuration::timing_row(&case, clash.as_ref(), problems)])?;
            examine_store(&case, report).await?;
        }
        Err(why) => {
            report.add(vec![match problems.iter().any(|problem| problem.says(&why)) {
                true => Row::skipped("store", "see configuration"),
                false => Row::fail("store", why, "write --store as `frazil doctor --help` shows"),
            }])?;
            skip(report, STORE_CHECKS, "there is no store to look at")?;
        }
    }
    report.check("files", files::look(args)).await?;
    report.check("ports", host::look_at_ports(args)).await?;
    report.add(vec![host::look_at_descriptors(args.limits.max_connections)])
}

async fn examine_store(case: &Case, report: &mut Report) -> Result<(), Failure> {
    report.check("login", store::look_at_login(case)).await?;
    report.check("directory", store::look_at_directory(case)).await?;
    let mut reached = None;
    report.check("store", store::reach(case, &mut reached)).await?;
    let Some(reached) = reached else {
        let open = ANSWER_CHECKS.into_iter().filter(|check| !report.has(check));
        let open: Vec<_> = open.collect();
        return skip(report, open, "the store could not be looked into");
    };
    let store = reached.as_ref();
    report.check("store-clock", host::look_at_store_clock(store)).await?;
    report.check("guarantees", store::look_at_guarantees(case, store)).await?;
    report.check("namespace", namespace::look_at_namespace(case, store)).await?;
    report.check("pool", namespace::look_at_pool(case, store)).await
}
