//! The promises of the store as it is set up, and what weakens them.

use frazil::coord::{Severity, Store};

use super::case::Case;
use super::reach::failed;
use super::report::Row;

const CHECK: &str = "guarantees";

pub(super) async fn look(case: &Case, store: &dyn Store) -> Vec<Row> {
    let promised = store.guarantees();
    let detail = format!("{}: uniqueness is {}", promised.store, promised.uniqueness.word());
    let mut rows = vec![Row::ok(CHECK, detail)];
    match store.diagnose(&case.effective_timing()).await {
        Ok(findings) => rows.extend(findings.into_iter().map(|found| match found.severity {
            Severity::Warning => Row::warn(CHECK, found.what, found.fix),
            _ => Row::fail(CHECK, found.what, found.fix),
        })),
        Err(error) => rows.push(failed(CHECK, &error)),
    }
    rows
}
