//! Cleanup: a loop that every process has, and of which only the leader's does anything.
//!
//! ```console
//! $ cargo run -p frazil-election --example cleanup
//! ```
//!
//! Start it in several terminals: one of them cleans up, the others skip their turn.
//! `FRAZIL_STORE` names the store (with the features `redis`, `etcd` and `zookeeper` also those), and
//! `FRAZIL_ELECTION_TTL` and its kind the settings.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::time::Duration;

use frazil_coord::{Namespace, StoreUrl, Token, UrlError};
use frazil_election::{Callbacks, Elections, Elector, Settings};

/// A day, where it is not an example.
const EVERY: Duration = Duration::from_secs(2);
/// What a round takes at most.
const ROUND_MAX: Duration = Duration::from_secs(1);

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let settings = Settings::from_env()?;
    let elections = Elections::open(&store()?, &Namespace::default(), &settings).await?;
    let candidate = elections.candidate("example-cleanup", settings)?;
    let elector = Elector::start(candidate, Callbacks::new());
    let mut ticks = tokio::time::interval(EVERY);
    let mut interrupted = std::pin::pin!(interrupted());
    loop {
        tokio::select! {
            () = &mut interrupted => break,
            _ = ticks.tick() => match clean_up(&elector) {
                Some(token) => println!("old records were removed under token {token}"),
                None => println!("another one cleans up"),
            }
        }
    }
    elector.stop().await?;
    Ok(())
}

/// One round, if this process leads; under which token.
pub(crate) fn clean_up(elector: &Elector) -> Option<Token> {
    let proof = elector.proof()?;
    // DELETE FROM sessions WHERE expires < now() AND fence <= token
    proof.ensure(ROUND_MAX).ok()
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
