//! Opening the store of an election.

use std::sync::Arc;

use frazil::coord::Copied;
use frazil::coord::{Scheme, Store};
use frazil::election::store_url;

use super::terms::Terms;
use crate::args::ElectRunArgs;
use crate::commands::place::warn_of_memory;
use crate::output::{Failure, say};

/// What the store is opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// To be elected.
    Contend,
    /// To see who is: nothing is created.
    Look,
}

/// Opens the store. One that is away is waited for, which is said, unless it is to be tried once.
pub(super) async fn reach(
    args: &ElectRunArgs,
    terms: &Terms,
    purpose: Purpose,
) -> Result<Arc<dyn Store>, Failure> {
    let url = store_url(&args.place.url()?, terms.settings.ttl);
    if url.scheme == Scheme::Static {
        return Err(Failure::usage(
            "static:N is for one process alone, and has no elections: use another store",
        ));
    }
    warn_of_memory(&url);
    let namespace = &args.place.namespace;
    let mut is_away = false;
    loop {
        let opened = match purpose {
            Purpose::Contend => frazil::coord::open(&url, namespace, Copied::Refuse).await,
            Purpose::Look => frazil::coord::look(&url, namespace).await,
        };
        match opened {
            Ok(store) => {
                if is_away {
                    say("the store is there");
                }
                return Ok(store);
            }
            Err(error) if error.kind().is_retryable() && !args.once => {
                if !is_away {
                    is_away = true;
                    say(format_args!("waiting for the store: {error:#}"));
                }
                tokio::time::sleep(terms.settings.retry).await;
            }
            Err(error) => return Err(error.into()),
        }
    }
}
