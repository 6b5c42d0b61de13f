//! Events as lines, on stderr: as text, or as JSON with `json` behind the name.
//!
//! ```console
//! $ cargo run -p frazil-log --example lines -- json
//! ```

use std::error::Error;

use frazil_log::{Form, Log};

fn main() -> Result<(), Box<dyn Error>> {
    let is_json = std::env::args().nth(1).is_some_and(|form| form == "json");
    let log = Log::start(&"info".parse()?, if is_json { Form::Json } else { Form::Text });
    for attempt in 0..3 {
        tracing::warn!(error = "connection refused", "the store is away");
        tracing::debug!(attempt, "not written: the filter says info");
    }
    tracing::info!(target: "frazil_example", worker = 7, "the lease is ours");
    log.finish();
    Ok(())
}
