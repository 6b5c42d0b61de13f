//! Missing replicas of the store: looked for from time to time, shown in warnings and metrics.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use frazil::coord::internal::forget_command;

use crate::app::Shared;

/// How often replicas are looked for: sentinels are asked, by every node.
const LOOK: Duration = Duration::from_secs(10);

/// The addresses of replicas that the store waits for, as they were last seen.
#[derive(Debug, Default)]
pub(crate) struct MissingReplicas(ArcSwap<Vec<String>>);

impl MissingReplicas {
    pub(crate) fn last(&self) -> Arc<Vec<String>> {
        self.0.load_full()
    }

    /// Notes what was seen, and logs what is new in it.
    fn note(&self, seen: Vec<String>, forget: impl Fn(&str) -> String) {
        let before = self.last();
        for replica in seen.iter().filter(|replica| !before.contains(replica)) {
            tracing::warn!(%replica, "{}", sentence(replica, &forget(replica)));
        }
        for replica in before.iter().filter(|replica| !seen.contains(replica)) {
            tracing::info!(%replica, "no takeover waits for replica {replica} any more");
        }
        self.0.store(Arc::new(seen));
    }
}

/// Looks for missing replicas for as long as it is polled.
pub(crate) async fn run(shared: &Shared) {
    let Some(node) = shared.issuer.node() else { return std::future::pending().await };
    loop {
        match node.store().missing_replicas().await {
            Ok(seen) => shared.replicas.note(seen, |replica| command(shared, replica)),
            // What cannot be seen now is what it was.
            Err(error) => {
                tracing::debug!(error = %format_args!("{error:#}"), "cannot ask the store about its replicas")
            }
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// A sentence for each that is missing, with what to type.
pub(crate) fn warnings(shared: &Shared) -> Vec<String> {
    let missing = shared.replicas.last();
    missing.iter().map(|replica| sentence(replica, &command(shared, replica))).collect()
}

fn sentence(replica: &str, command: &str) -> String {
    format!(
        "replica {replica} of the store is missing: running nodes go on, and workers whose holder \
         did not release them wait for it; start it again, or if it is gone for good: {command}"
    )
}

fn command(shared: &Shared, replica: &str) -> String {
    let store = shared.issuer.node().map(|node| node.store().to_string()).unwrap_or_default();
    forget_command(&[replica.to_owned()], &store, &shared.namespace)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_seen_last_is_what_is_named() {
        let missing = MissingReplicas::default();
        missing.note(vec!["10.0.0.1:6379".into()], |_| String::new());
        assert_eq!(*missing.last(), ["10.0.0.1:6379"]);
        missing.note(Vec::new(), |_| String::new());
        assert!(missing.last().is_empty());
    }
}
