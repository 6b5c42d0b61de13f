//! `frazil doctor`: is all as it should be, and if not, what repairs it?
//!
//! A check looks and gives findings; it never writes, neither to the store nor to the disk. The checks are in
//! `frazil-doctor`, and those of the files that a server reads in `frazil-server`.

mod configuration;
mod report;
mod served;

use frazil::coord::internal::time::unix_ms;
use frazil_doctor::{DescriptorNeeds, Finding, LISTENERS, Listening, NodeSettings};
use frazil_server::DESCRIPTORS_KEPT;

use self::report::Report;
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
    report.add(vec![frazil_doctor::clock()])?;
    match config::examine(&args.serve, Files::Look) {
        Ok(examined) if examined.is_whole => {
            examine_node(&args.serve, &examined, &mut report).await?;
        }
        unknown => {
            report.add(match unknown {
                Ok(Examined { problems, .. }) => {
                    configuration::findings(&args.serve, &problems, None)
                }
                Err(wrong) => configuration::unreadable(&wrong),
            })?;
            let rest = ["files", "descriptors"].into_iter().chain(LISTENERS);
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
    report.add(checks.into_iter().map(|check| Finding::skipped(check, why)).collect())
}

async fn examine_node(
    flags: &ServeArgs,
    examined: &Examined,
    report: &mut Report,
) -> Result<(), Failure> {
    let (args, problems) = (&examined.settings.args, &examined.problems);
    let node = configuration::node(args);
    let clash = node.as_ref().ok().filter(|_| !args.dev).and_then(NodeSettings::clash);
    report.add(configuration::findings(flags, problems, clash.as_ref()))?;
    report.add(vec![frazil_doctor::lifetime(&args.layout.layout, unix_ms())])?;
    match node {
        _ if args.dev => {
            let why = "a server with --dev makes a store of its own";
            skip(report, STORE_CHECKS.into_iter().chain(["store"]), why)?;
        }
        _ if ["store.url", "store.namespace"].iter().any(|key| examined.left_out(key)) => {
            let why = "which one is not known: see configuration";
            skip(report, STORE_CHECKS.into_iter().chain(["store"]), why)?;
        }
        Ok(node) => {
            report.add(vec![configuration::timing(&node, clash.as_ref(), problems)])?;
            examine_store(&node, report).await?;
        }
        Err(why) => {
            report.add(vec![match problems.iter().any(|problem| problem.says(&why)) {
                true => Finding::skipped("store", "see configuration"),
                false => {
                    Finding::fail("store", why, "write --store as `frazil doctor --help` shows")
                }
            }])?;
            skip(report, STORE_CHECKS, "there is no store to look at")?;
        }
    }
    let server = config::readable_config(args);
    let look = frazil_doctor::apart("files", move || server.diagnose_files(unix_ms()));
    report.check("files", look).await?;
    report.check("ports", frazil_doctor::ports(listening(args))).await?;
    let needs =
        DescriptorNeeds { max_connections: args.limits.max_connections, kept: DESCRIPTORS_KEPT };
    report.add(vec![frazil_doctor::descriptors(needs)])
}

fn listening(args: &ServeArgs) -> Listening {
    let listen = &args.listen;
    Listening {
        addresses: [listen.http.0, listen.grpc.0, listen.resp.0, listen.admin.0],
        has_tls: args.tls.tls_cert.is_some(),
        has_keys: args.keys.is_some(),
        is_insecure: listen.insecure,
    }
}

async fn examine_store(node: &NodeSettings, report: &mut Report) -> Result<(), Failure> {
    report.check("login", frazil_doctor::login(node)).await?;
    report.check("directory", frazil_doctor::directory(node)).await?;
    let mut reached = None;
    let reach = async {
        let (findings, store) = frazil_doctor::store(node).await;
        reached = store;
        findings
    };
    report.check("store", reach).await?;
    let Some(reached) = reached else {
        let open = ANSWER_CHECKS.into_iter().filter(|check| !report.has(check));
        let open: Vec<_> = open.collect();
        return skip(report, open, "the store could not be looked into");
    };
    let store = reached.as_ref();
    report.check("store-clock", frazil_doctor::store_clock(store)).await?;
    report.check("guarantees", frazil_doctor::guarantees(node, store)).await?;
    report.check("namespace", frazil_doctor::namespace(node, store)).await?;
    report.check("pool", frazil_doctor::pool(node, store)).await
}
