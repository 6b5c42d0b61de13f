//! Metrics aggregation: callbacks start a task when elected, and wait for its end when not.
//!
//! ```console
//! $ cargo run -p frazil-election --example metrics_aggregation
//! ```
//!
//! Start it in several terminals: one aggregates at a time, also while Ctrl-C is being handled.
//! `FRAZIL_STORE` names the store (with the features `redis`, `etcd` and `zookeeper` also those), and
//! `FRAZIL_ELECTION_TTL` and its kind the settings.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use frazil_coord::{Namespace, StoreUrl, UrlError};
use frazil_election::{Callbacks, Candidate, Elections, Elector, Proof, Settings};
use tokio::task::JoinHandle;

/// A minute, where it is not an example.
const EVERY: Duration = Duration::from_secs(1);

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let settings = Settings::from_env()?;
    let elections = Elections::open(&store()?, &Namespace::default(), &settings).await?;
    let candidate = elections.candidate("example-metrics", settings)?;
    let elector = aggregator(candidate, EVERY, || println!("metrics were aggregated and sent"));
    interrupted().await;
    // Ends the task, waits for it, and only then lets another one lead.
    elector.stop().await?;
    Ok(())
}

/// Aggregates while it leads.
pub(crate) fn aggregator(
    candidate: Candidate,
    every: Duration,
    aggregate: impl Fn() + Clone + Send + 'static,
) -> Elector {
    let task: Arc<Mutex<Option<JoinHandle<()>>>> = Arc::default();
    let started = task.clone();
    let callbacks = Callbacks::new()
        .on_elected(move |proof| {
            let work = tokio::spawn(rounds(proof, every, aggregate.clone()));
            *started.lock().unwrap_or_else(PoisonError::into_inner) = Some(work);
            std::future::ready(())
        })
        .on_lost(move |_, loss| {
            let work = task.lock().unwrap_or_else(PoisonError::into_inner).take();
            async move {
                if let Some(work) = work {
                    // If it panicked, it has ended too.
                    let _ = work.await;
                }
                println!("aggregates no more: {loss}");
            }
        });
    Elector::start(candidate, callbacks)
}

async fn rounds(proof: Proof, every: Duration, aggregate: impl Fn()) {
    let mut ticks = tokio::time::interval(every);
    loop {
        tokio::select! {
            biased;
            () = proof.cancelled() => return,
            _ = ticks.tick() => aggregate(),
        }
    }
}

/// The store of the environment, or a directory that all examples on this machine share.
fn store() -> Result<StoreUrl, UrlError> {
    let shared = std::env::temp_dir().join("frazil-examples");
    let default = || format!("file:{}", shared.display());
    std::env::var("FRAZIL_STORE").unwrap_or_else(|_| default()).parse()
}

async fn interrupted() {
    // Where signals cannot be caught, the process simply ends.
    let _ = tokio::signal::ctrl_c().await;
}
