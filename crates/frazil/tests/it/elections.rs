//! Elections in the namespace of a node.

use std::time::Duration;

use frazil::Node;
use frazil::coord::ErrorKind;
use frazil::election::Settings;

/// Longer than anything here takes.
const LIMIT: Duration = Duration::from_secs(30);

async fn node(store: &str) -> Node {
    Node::builder().store(store).start().await.unwrap()
}

#[tokio::test]
async fn all_elections_of_a_node_are_the_same() {
    let directory = tempfile::tempdir().unwrap();
    let file = format!("file:{}", directory.path().display());
    for store in [file.as_str(), "memory:elections"] {
        let (node, settings) = (node(store).await, Settings::default());
        let elections = node.elections(&settings).await.unwrap();
        let candidate = elections.candidate("job", settings.clone()).unwrap();
        let leadership = tokio::time::timeout(LIMIT, candidate.campaign()).await.unwrap().unwrap();
        let leader = node.elections(&settings).await.unwrap().leader("job").await.unwrap();
        assert_eq!(leader.expect("somebody leads").token, leadership.token(), "{store}");
        assert!(node.next().await.is_ok());
        leadership.resign().await.unwrap();
        node.shutdown().await;
    }
}

#[tokio::test]
async fn a_store_for_one_process_has_no_elections() {
    let directory = tempfile::tempdir().unwrap();
    let node = node(&format!("static:7?state={}", directory.path().display())).await;
    let refused = node.elections(&Settings::default()).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidConfig);
    node.shutdown().await;
}
