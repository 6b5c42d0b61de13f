//! The time that a check may take, and the thread that it may block.

use std::pin::Pin;
use std::time::Duration;

use tokio::time::timeout;

use crate::finding::Finding;

/// No check takes longer: what has not answered by then hangs. More than the time-out of a store by
/// default.
const CHECK_MAX: Duration = Duration::from_secs(15);

/// A check that has not begun. Boxed, so that it is compiled here and not in every crate that runs it.
pub type Check<'a> = Pin<Box<dyn Future<Output = Vec<Finding>> + Send + 'a>>;

/// What a check finds within the time that it may take.
pub async fn within_limit(
    name: &'static str,
    check: impl Future<Output = Vec<Finding>>,
) -> Vec<Finding> {
    timeout(CHECK_MAX, check).await.unwrap_or_else(|_| {
        vec![Finding::fail(
            name,
            format!("no result within {} s", CHECK_MAX.as_secs()),
            "something hangs: look at the network and the disk that are involved",
        )]
    })
}

/// Looks at something that may block, apart from what waits for it.
pub async fn apart(
    name: &'static str,
    look: impl FnOnce() -> Vec<Finding> + Send + 'static,
) -> Vec<Finding> {
    let looked = tokio::task::spawn_blocking(look).await;
    looked.unwrap_or_else(|error| {
        vec![Finding::fail(name, format!("the check itself failed: {error}"), "report this")]
    })
}
