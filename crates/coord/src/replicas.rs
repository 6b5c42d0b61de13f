//! Servers that could take a store's place and do not have all that it acknowledged.

use std::fmt;

/// What came of giving a replica up.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ForgottenReplica {
    /// Takeovers do not wait for it any more, until it is connected again.
    Done,
    /// It is connected, and counts.
    Connected,
    /// Nobody would promote a server of that address.
    NotKnown {
        /// The addresses of those that could be promoted.
        known: Vec<String>,
    },
    /// No takeover of this store waits for replicas.
    NoneCounts,
}

/// What an operator types to give replicas up that are gone for good. `store`: its URL, without
/// secrets.
#[must_use]
pub fn forget_command(
    addresses: &[String],
    store: &impl fmt::Display,
    namespace: &impl fmt::Display,
) -> String {
    format!(
        "frazil store forget-replica {} --store '{store}' --namespace {namespace}",
        addresses.join(" ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_can_be_typed_as_it_is() {
        let url = "redis+sentinel://10.0.0.1:26379/main?isolation=1s&timeout=2s";
        let addresses = ["10.0.0.2:6379".to_owned(), "10.0.0.3:6379".to_owned()];
        assert_eq!(
            forget_command(&addresses, &url, &"default"),
            "frazil store forget-replica 10.0.0.2:6379 10.0.0.3:6379 --store \
             'redis+sentinel://10.0.0.1:26379/main?isolation=1s&timeout=2s' --namespace default"
        );
    }
}
