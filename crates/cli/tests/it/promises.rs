//! What is printed about a store beside what the documentation says.

use serde_json::Value;

/// What the documentation says, in one line.
fn documented_guarantees() -> String {
    let page = include_str!("../../../../docs/guarantees.md");
    page.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Checks that a store's promises, as `store show` prints them, are those of the documentation.
pub(crate) fn assert_documented(shown: &Value) {
    let (page, promise) = (documented_guarantees(), &shown["guarantees"]);
    let causes = promise["voided_by"].as_array().unwrap();
    for text in causes.iter().chain([&promise["because"]]) {
        let text = text.as_str().unwrap();
        assert!(page.contains(text), "docs/guarantees.md does not say {text:?}");
    }
}
