//! A scheduler: jobs at set times, run by one process of many.
//!
//! ```console
//! $ cargo run -p frazil-election --example scheduler
//! ```
//!
//! Start it in several terminals, end the one that leads with Ctrl-C, and another one goes on.
//! `FRAZIL_STORE` names the store (with the features `redis`, `etcd` and `zookeeper` also those), and
//! `FRAZIL_ELECTION_TTL` and its kind the settings.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::time::Duration;

use frazil_coord::{Namespace, StoreUrl, Token, UrlError};
use frazil_election::{Elections, Proof, Settings, run_until};

/// An hour, in a scheduler that is not an example.
const EVERY: Duration = Duration::from_secs(2);
/// What a job takes at most: none is begun with less than that left to lead.
const JOB_MAX: Duration = Duration::from_millis(500);

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let settings = Settings::from_env()?;
    let elections = Elections::open(&store()?, &Namespace::default(), &settings).await?;
    let candidate = elections.candidate("example-scheduler", settings)?;
    println!("{} campaigns; Ctrl-C ends it", candidate.instance());
    let job = |token: Token| println!("scheduled jobs run under token {token}");
    run_until(&candidate, interrupted(), |proof| schedule(proof, EVERY, job)).await?;
    println!("another one may lead now");
    Ok(())
}

/// Runs the job again and again until the leadership is over.
pub(crate) async fn schedule(proof: Proof, every: Duration, mut job: impl FnMut(Token)) {
    let mut ticks = tokio::time::interval(every);
    loop {
        tokio::select! {
            biased;
            () = proof.cancelled() => return,
            _ = ticks.tick() => {}
        }
        // What a job writes should say the token, and be refused where a higher one was seen.
        if let Ok(token) = proof.ensure(JOB_MAX) {
            job(token);
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
