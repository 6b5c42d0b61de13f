//! A first look at the server: whether it is there, what it is, and whether it gives us IDs.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use frazil_wire::{Info, ScopeInfo, ScopeKind};

use super::book::Book;
use super::client::{Client, Facts};
use super::fault::Fault;
use super::load::{PAUSE, ask};
use super::moment::now;
use super::plan::Plan;
use super::schedule::Times;
use super::tally::Tally;
use super::verify::Sender;
use crate::args::{BenchArgs, ProtocolArg, ServerArg};
use crate::output::{Failure, say};
use crate::remote::Server;
use crate::words::printable;

/// Requests that must fail in a row at the end before a server is called gone: one alone may be a
/// connection that it closed for its own reasons.
const LAST_TRIES: u32 = 3;

/// Connects and asks what the server is. One that does not say is measured all the same.
pub(super) async fn look(plan: &Plan) -> Result<(Client, Option<Facts>), Failure> {
    let failed = |fault: Fault| fault.into_failure(&plan.address);
    let mut client = Client::open(plan).await.map_err(failed)?;
    let facts = tokio::time::timeout(plan.timeout, client.facts()).await;
    match facts.unwrap_or(Err(Fault::TimedOut)) {
        Ok(facts) if plan.batch > facts.max_count => Err(Failure::usage(format_args!(
            "{} gives at most {} IDs in one request: ask for a smaller --batch than {}",
            plan.address, facts.max_count, plan.batch
        ))),
        Ok(facts) => Ok((client, Some(facts))),
        Err(fault @ Fault::Refused { .. }) if !is_about_keys(&fault) => {
            say(format_args!("note: {} does not say what it is; --layout says it", plan.address));
            Ok((client, None))
        }
        Err(fault) => Err(failed(fault)),
    }
}

/// Whether the scope that is asked for is strict. A node tells that over HTTP alone, so it is asked
/// there if its address is known.
pub(super) fn is_strict(args: &BenchArgs, plan: &Plan, facts: &Facts) -> bool {
    let Some(scope) = plan.scope.as_ref().filter(|_| plan.verify) else { return false };
    if plan.address.protocol == ProtocolArg::Http {
        return facts.is_strict;
    }
    let scopes = http_base(args, plan).and_then(|base| scopes(args, &base, &facts.node));
    let Some(scopes) = scopes else {
        say(format_args!(
            "note: whether the scope {} is strict is told over HTTP alone, so its order is checked \
             for each worker; --metrics http://HOST:PORT is where this node can be asked",
            printable(scope)
        ));
        return false;
    };
    scopes.iter().any(|told| told.name == *scope && told.kind == ScopeKind::Strict)
}

fn http_base(args: &BenchArgs, plan: &Plan) -> Option<String> {
    args.metrics.clone().or_else(|| plan.address.http_base())
}

/// The scopes of a node, if it is that one.
fn scopes(args: &BenchArgs, url: &str, node: &str) -> Option<Vec<ScopeInfo>> {
    let base = url.trim_end_matches('/');
    let arg = ServerArg { server: None, trust: args.trust.clone() };
    let server = Server::new(base.strip_suffix("/metrics").unwrap_or(base), &arg).ok()?;
    let info: Info = server.get("/v1/info").ok()?;
    (info.node.name == node).then_some(info.scopes)
}

fn is_about_keys(fault: &Fault) -> bool {
    fault.name() == "UNAUTHENTICATED"
}

/// Asks once as the load will, so that what is refused is told at once and not as a measurement.
pub(super) async fn try_once(
    plan: &Plan,
    client: Client,
    verify: Option<Sender>,
) -> Result<(), Failure> {
    match request(plan, Some(client), verify).await {
        // The check finds that too, and says so at the end.
        Some(Fault::WrongCount { .. }) if plan.verify => Ok(()),
        Some(fault) => Err(fault.into_failure(&plan.address)),
        None => Ok(()),
    }
}

/// Whether the server still answers: why not, after several tries.
pub(super) async fn last_look(
    plan: &Plan,
    verify: impl Fn() -> Option<Sender>,
) -> Result<(), Fault> {
    let mut outcome = Ok(());
    for number in 0..LAST_TRIES {
        if number > 0 {
            tokio::time::sleep(PAUSE).await;
        }
        outcome = match request(plan, None, verify()).await {
            // That is an answer, whatever else is wrong with it.
            None | Some(Fault::WrongCount { .. }) => return Ok(()),
            Some(fault) => Err(fault),
        };
    }
    outcome
}

/// One request that is not measured; why it failed, if it did.
async fn request(plan: &Plan, mut client: Option<Client>, verify: Option<Sender>) -> Option<Fault> {
    let start = now();
    let times = Times { start, begin: start, end: start + Duration::from_hours(1) };
    let mut book = Book::new(plan.batch, times, Arc::new(Mutex::new(Tally::new())), verify);
    book.begin(start);
    let asked = ask(plan, &mut client, &mut book).await;
    let fault = asked.err().or_else(|| book.fault().cloned());
    book.close().await;
    fault
}
