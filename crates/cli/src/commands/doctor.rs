//! `frazil doctor`: is all as it should be, and if not, what mends it?
//!
//! A check looks and gives rows; it never writes, neither to the store nor to the disk.

mod agreement;
mod case;
mod clock;
mod descriptors;
mod directory;
mod lifetime;
mod login;
mod occupant;
mod pool;
mod ports;
mod promises;
mod reach;
mod report;
mod served;
mod timing;

use self::case::Case;
use self::report::{Report, Row};
use super::place;
use crate::args::DoctorArgs;
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
    report.add(vec![clock::kernel(), lifetime::of_layout(&args.layout.layout)])?;
    match Case::of(args) {
        Err(row) => {
            report.add(vec![row])?;
            for check in STORE_CHECKS {
                report.add(vec![Row::skipped(check, "there is no store to look at")])?;
            }
        }
        Ok(case) => examine_store(&case, &mut report).await?,
    }
    report.check("ports", ports::look(args)).await?;
    report.add(vec![descriptors::look(args)])?;
    if let Some(url) = &args.server {
        report.check("server", served::look(url)).await?;
    }
    report.finish()
}

/// The checks that need the store's URL.
const STORE_CHECKS: [&str; 7] =
    ["timing", "login", "directory", "store-clock", "guarantees", "namespace", "pool"];
/// Those of them that need an answer of the store.
const ANSWER_CHECKS: [&str; 4] = ["store-clock", "guarantees", "namespace", "pool"];

async fn examine_store(case: &Case, report: &mut Report) -> Result<(), Failure> {
    report.add(vec![timing::look(case)])?;
    report.check("login", login::look(case)).await?;
    report.check("directory", directory::look(case)).await?;
    let mut reached = None;
    report.check("store", reach::look(case, &mut reached)).await?;
    let Some(store) = reached else {
        let open = ANSWER_CHECKS.into_iter().filter(|check| !report.has(check));
        for check in open.collect::<Vec<_>>() {
            report.add(vec![Row::skipped(check, "the store could not be looked into")])?;
        }
        return Ok(());
    };
    let store = store.as_ref();
    report.check("store-clock", clock::of_store(store)).await?;
    report.check("guarantees", promises::look(case, store)).await?;
    report.check("namespace", agreement::look(case, store)).await?;
    report.check("pool", pool::look(case, store)).await
}
