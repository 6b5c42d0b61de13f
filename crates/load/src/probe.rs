//! A first look at the server: whether it is there, what it is, and whether it gives us IDs.

use std::sync::Arc;
use std::time::Duration;

use frazil_id::Layout;
use frazil_wire::{Info, ScopeInfo, ScopeKind, printable};

use parking_lot::Mutex;

use crate::address::Protocol;
use crate::book::Book;
use crate::client::{Client, Facts};
use crate::error::Error;
use crate::fault::Fault;
use crate::moment::now;
use crate::plan::Plan;
use crate::schedule::Times;
use crate::tally::Tally;
use crate::threads::{PAUSE, ask};
use crate::verify::Sender;

/// Requests that must fail in a row at the end before a server is called gone: one alone may be a
/// connection that it closed for its own reasons.
const LAST_TRIES: u32 = 3;

/// Connects and asks what the server is. One that does not say is measured all the same.
pub(crate) async fn look(
    plan: &Plan,
    notes: &mut Vec<String>,
) -> Result<(Client, Option<Facts>), Error> {
    let failed = |fault: Fault| fault.into_error(&plan.address);
    let mut client = Client::open(plan).await.map_err(failed)?;
    let facts = tokio::time::timeout(plan.timeout, client.facts()).await;
    match facts.unwrap_or(Err(Fault::TimedOut)) {
        Ok(facts) if plan.batch > facts.max_count => Err(Error::usage(format_args!(
            "{} gives at most {} IDs in one request: ask for a smaller --batch than {}",
            plan.address, facts.max_count, plan.batch
        ))),
        Ok(facts) => Ok((client, Some(facts))),
        Err(fault @ Fault::Refused { .. }) if !is_about_keys(&fault) => {
            notes.push(format!("note: {} does not say what it is; --layout says it", plan.address));
            Ok((client, None))
        }
        Err(fault) => Err(failed(fault)),
    }
}

/// Whether the scope that is asked for is strict. A node tells that over HTTP alone, so it is asked
/// there if its address is known.
pub(crate) fn is_strict(plan: &Plan, facts: &Facts, notes: &mut Vec<String>) -> bool {
    let Some(scope) = plan.scope.as_ref().filter(|_| plan.verify) else { return false };
    if plan.address.protocol == Protocol::Http {
        return facts.is_strict;
    }
    let Some(scopes) = scopes(plan, &facts.node) else {
        notes.push(format!(
            "note: whether the scope {} is strict is told over HTTP alone, so its order is checked \
             for each worker; --metrics http://HOST:PORT is where this node can be asked",
            printable(scope)
        ));
        return false;
    };
    scopes.iter().any(|told| told.name == *scope && told.kind == ScopeKind::Strict)
}

/// The scopes of a node, if it is that one.
fn scopes(plan: &Plan, node: &str) -> Option<Vec<ScopeInfo>> {
    let (_, text) = plan.pages.as_ref()?.get("/v1/info", plan.timeout).ok()?;
    let info: Info = serde_json::from_str(&text).ok()?;
    (info.node.name == node).then_some(info.scopes)
}

/// The layout to check IDs by: the server's own, or that of the plan for one that does not say.
pub(crate) fn layout(plan: &Plan, facts: Option<&Facts>) -> Result<Layout, Error> {
    let Some(facts) = facts else { return Ok(plan.layout) };
    match plan.expected_layout {
        Some(typed) if typed != facts.layout => Err(Error::usage(format_args!(
            "--layout says \"{typed}\", and the server's IDs have \"{}\": leave --layout out, it is \
             for --library and for servers that do not say their own",
            facts.layout
        ))),
        _ => Ok(facts.layout),
    }
}

fn is_about_keys(fault: &Fault) -> bool {
    fault.name() == "UNAUTHENTICATED"
}

/// Asks once as the load will, so that what is refused is told at once and not as a measurement.
pub(crate) async fn try_once(
    plan: &Plan,
    client: Client,
    verify: Option<Sender>,
) -> Result<(), Error> {
    match request(plan, Some(client), verify).await {
        // The check finds that too, and says so at the end.
        Some(Fault::WrongCount { .. }) if plan.verify => Ok(()),
        Some(fault) => Err(fault.into_error(&plan.address)),
        None => Ok(()),
    }
}

/// Whether the server still answers: why not, after several tries.
pub(crate) async fn last_look(
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
