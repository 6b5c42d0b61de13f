//! `frazil store forget-replica`.

use frazil::coord::{ForgottenReplica, Store};
use serde::Serialize;

use crate::args::ForgetReplicaArgs;
use crate::output::{Data, Exit, Failure, say};

#[derive(Serialize)]
struct Forgotten<'a> {
    forgotten: &'a [String],
    /// Those that takeovers still wait for.
    missing: Vec<String>,
}

pub(super) async fn run(args: &ForgetReplicaArgs) -> Result<(), Failure> {
    let (store, _) = args.place.open_namespace().await?;
    args.loss.check(store.as_ref()).await?;
    for replica in &args.replicas {
        forget(store.as_ref(), replica).await?;
        say(format_args!(
            "no takeover waits for {replica} any more, until it is connected again. If it never will \
             be, let the sentinels or the cluster forget it too (SENTINEL RESET, CLUSTER FORGET)"
        ));
    }
    args.loss.settle(store.as_ref()).await?;
    if args.json {
        let missing = store.missing_replicas().await?;
        let mut data = Data::new();
        data.json(&Forgotten { forgotten: &args.replicas, missing })?;
        data.flush()?;
    }
    Ok(())
}

async fn forget(store: &dyn Store, replica: &str) -> Result<(), Failure> {
    let why = match store.forget_replica(replica).await? {
        ForgottenReplica::Done => return Ok(()),
        ForgottenReplica::Connected => {
            format!(
                "{replica} is connected, and counts. If it does not answer, the master drops it after \
                 its repl-timeout: run this again then"
            )
        }
        ForgottenReplica::NotKnown { known } => {
            let known = match known.is_empty() {
                true => "there is none".to_owned(),
                false => format!("there are {}", known.join(", ")),
            };
            format!("{store} has no replica {replica} that could be promoted: {known}")
        }
        _ => {
            return Err(Failure::usage(format_args!(
                "{store} waits for no replicas: only redis+sentinel: and redis+cluster: do, with \
                 appendonly yes"
            )));
        }
    };
    Err(Failure::new(Exit::No, why))
}
