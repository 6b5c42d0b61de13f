//! File descriptors: each connection takes one, and a process may have so many.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::error::Error;
use crate::plan::Plan;

/// Descriptors of a runtime: for events, for waking it up, and for signals.
const OF_A_THREAD: u64 = 4;
/// Everything else: the terminal, the first look, metrics, looking up names.
const OF_THE_REST: u64 = 32;

/// Sees to it that all connections can be opened: raises the limit as far as the system lets us,
/// and refuses what is beyond that before anything is measured.
pub(crate) fn provide(plan: &Plan) -> Result<(), Error> {
    let needed = needed(plan);
    let limit = getrlimit(Resource::Nofile);
    if is_within(needed, limit.current) {
        return Ok(());
    }
    if is_within(needed, limit.maximum)
        && setrlimit(Resource::Nofile, Rlimit { current: Some(needed), ..limit }).is_ok()
    {
        return Ok(());
    }
    let connections = plan.connections;
    Err(Error::usage(format_args!(
        "{connections} connections take {needed} file descriptors, and this process may have {}: \
         raise that with `ulimit -n {needed}`, or ask for fewer --connections",
        allowed()
    )))
}

/// How many this process may have, in words.
pub(crate) fn allowed() -> String {
    let limit = getrlimit(Resource::Nofile).current;
    limit.map_or_else(|| "any number".to_owned(), |limit| limit.to_string())
}

fn needed(plan: &Plan) -> u64 {
    // Requests at a rate have a timer for each connection.
    let each = if plan.rate.is_some() { 2 } else { 1 };
    plan.connections as u64 * each + plan.threads() as u64 * OF_A_THREAD + OF_THE_REST
}

/// Whether a limit, if there is one, allows so many.
fn is_within(needed: u64, limit: Option<u64>) -> bool {
    limit.is_none_or(|limit| needed <= limit)
}
