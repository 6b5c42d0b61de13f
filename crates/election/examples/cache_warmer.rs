//! A cache warmer: whoever is elected fills a cache that all share, once for each election.
//!
//! ```console
//! $ cargo run -p frazil-election --example cache_warmer
//! ```
//!
//! Start it in several terminals and end the one that leads: the next one warms the cache again.
//! `FRAZIL_STORE` names the store (with the features `redis`, `etcd` and `zookeeper` also those), and
//! `FRAZIL_ELECTION_TTL` and its kind the settings.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};

use frazil_coord::{Namespace, StoreUrl, UrlError};
use frazil_election::{Callbacks, Candidate, Elections, Elector, Proof, Settings};

/// What is cached, by its key.
pub(crate) type Cache = Arc<Mutex<BTreeMap<u32, String>>>;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let settings = Settings::from_env()?;
    let elections = Elections::open(&store()?, &Namespace::default(), &settings).await?;
    let candidate = elections.candidate("example-cache-warmer", settings)?;
    let elector = warmer(candidate, Cache::default());
    // Others may add their own, before it leads and while it does.
    elector.on_leader_changed(|leader| {
        println!("leader: {}", leader.map_or("nobody".to_owned(), |leader| leader.instance));
        std::future::ready(())
    });
    interrupted().await;
    elector.stop().await?;
    Ok(())
}

/// Warms the cache whenever elected.
pub(crate) fn warmer(candidate: Candidate, cache: Cache) -> Elector {
    let callbacks = Callbacks::new().on_elected(move |proof| warm(proof, cache.clone()));
    Elector::start(candidate, callbacks)
}

async fn warm(proof: Proof, cache: Cache) {
    for key in 0..1000 {
        if !proof.is_leader() {
            println!("another one warms the cache from {key} on");
            return;
        }
        let value = format!("loaded under token {}", proof.token());
        cache.lock().unwrap_or_else(PoisonError::into_inner).insert(key, value);
        // Loading takes its time in a cache that is not an example.
        tokio::task::yield_now().await;
    }
    println!("the cache is warm");
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
