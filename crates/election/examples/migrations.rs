//! Migrations at the start: the first process does them, the others wait and find them done.
//!
//! ```console
//! $ cargo run -p frazil-election --example migrations
//! ```
//!
//! Start it in several terminals at once: one migrates, and all serve after that.
//! `FRAZIL_STORE` names the store (with the features `redis`, `etcd` and `zookeeper` also those), and
//! `FRAZIL_ELECTION_TTL` and its kind the settings.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::path::Path;

use frazil_coord::{Namespace, StoreUrl, Token, UrlError};
use frazil_election::fence::FencedFile;
use frazil_election::{Candidate, Elections, Settings, run};

/// The version of the schema that this program needs.
const WANTED: u32 = 3;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let settings = Settings::from_env()?;
    let elections = Elections::open(&store()?, &Namespace::default(), &settings).await?;
    let candidate = elections.candidate("example-migrations", settings)?;
    let schema = std::env::temp_dir().join("frazil-example-schema");
    match migrated(&candidate, &schema).await? {
        0 => println!("the schema is at version {WANTED} already"),
        steps => println!("{steps} migrations were done here"),
    }
    println!("serving");
    Ok(())
}

/// Leads, migrates what is left to migrate, and resigns; how many steps were done here.
pub(crate) async fn migrated(candidate: &Candidate, schema: &Path) -> Result<u32, Box<dyn Error>> {
    // The work returns while it leads, which ends the run. Whoever comes next finds it done.
    run(candidate, |proof| async move { migrate(schema, proof.token()) }).await?
}

/// A file is the database here; a real one has its version in a fenced row (`FencedTable`).
fn migrate(schema: &Path, token: Token) -> Result<u32, Box<dyn Error>> {
    let fenced = FencedFile::new(schema);
    // Before it is read, so that a leader before this one cannot write any more.
    if !fenced.raise(token)?.is_accepted() {
        return Err("somebody else leads by now".into());
    }
    let done = std::fs::read_to_string(schema).ok().and_then(|text| text.parse().ok());
    let done: u32 = done.unwrap_or(0);
    for version in done + 1..=WANTED {
        if !fenced.write(token, version.to_string().as_bytes())?.is_accepted() {
            return Err("somebody else leads by now".into());
        }
    }
    Ok(WANTED.saturating_sub(done))
}

/// The store of the environment, or a directory that all examples on this machine share.
fn store() -> Result<StoreUrl, UrlError> {
    let shared = std::env::temp_dir().join("frazil-examples");
    let default = || format!("file:{}", shared.display());
    std::env::var("FRAZIL_STORE").unwrap_or_else(|_| default()).parse()
}
