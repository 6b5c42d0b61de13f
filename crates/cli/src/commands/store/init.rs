//! `frazil store init`.

use frazil::coord::rules::WINDOW_MAX_MS;
use frazil::coord::stores::file::Copied;
use frazil::coord::time::unix_ms;
use frazil::coord::{FORMAT, Group, Meta, Nonce, Put, Timing};

use crate::args::InitArgs;
use crate::output::{Data, Exit, Failure, say};

pub(super) async fn run(args: &InitArgs) -> Result<(), Failure> {
    let meta = meta(args)?;
    let store = args.place.open(Copied::Refuse).await?;
    if store.meta().await?.is_none() && !store.list(Group::Workers).await?.is_empty() {
        let why = "there are records without meta: the namespace is not new. Use frazil store \
                   quarantine";
        return Err(Failure::new(Exit::Refused, why));
    }
    match store.put_meta(None, &meta).await? {
        Put::Done(_) => {}
        Put::Conflict => {
            let why = format!("the namespace {:?} exists already", args.place.namespace.as_str());
            return Err(Failure::new(Exit::No, why));
        }
    }
    say(format_args!("created the namespace {:?} on {store}", args.place.namespace.as_str()));
    if args.json {
        let mut data = Data::new();
        data.json(&meta)?;
        data.flush()?;
    }
    Ok(())
}

fn meta(args: &InitArgs) -> Result<Meta, Failure> {
    let layout = &args.layout.layout;
    let last = u32::try_from(layout.last_worker()).unwrap_or(u32::MAX);
    let (first_worker, last_worker) = args.workers.workers.unwrap_or((0, last));
    if last_worker > last {
        let why = format!("worker {last_worker} does not fit: the layout has 0 to {last}");
        return Err(Failure::usage(why));
    }
    let window_ms = u64::try_from(args.window.as_millis()).unwrap_or(u64::MAX);
    let least = Timing::default().ttl * 3;
    if args.window < least {
        let why = format!("a window is at least {} s: nodes must survive that", least.as_secs());
        return Err(Failure::usage(why));
    }
    if window_ms > WINDOW_MAX_MS {
        let why = format!("a window is at most {} minutes", WINDOW_MAX_MS / 60_000);
        return Err(Failure::usage(why));
    }
    let incarnation = Nonce::mint().map_err(|error| {
        Failure::new(Exit::Unavailable, format_args!("no random bits: {error}"))
    })?;
    Ok(Meta {
        format: FORMAT,
        incarnation,
        layout: frazil::layout_mark(layout),
        first_worker,
        last_worker,
        window_ms,
        quarantine: 0,
        created: unix_ms(),
    })
}
