//! The start of the node: its store is opened, however long that takes to appear.

use std::time::Duration;

use frazil::coord::ErrorKind;
use frazil::{Builder, Node, StartError};

/// Between two attempts: a store that comes back is used at once, as people see it.
pub(crate) const RETRY: Duration = Duration::from_secs(1);

/// Opens the node's store and begins to lease. Tries again while the store cannot be reached;
/// `tell` hears of each failure.
///
/// # Errors
/// What trying again does not repair.
pub(crate) async fn open(
    builder: &Builder,
    tell: impl Fn(&StartError),
) -> Result<Node, StartError> {
    loop {
        match builder.clone().begin().await {
            Err(error) if is_passing(&error) => {
                tell(&error);
                tokio::time::sleep(RETRY).await;
            }
            outcome => return outcome,
        }
    }
}

fn is_passing(error: &StartError) -> bool {
    let StartError::Store(error) = error else { return false };
    matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::Unknown)
}
