//! `frazil store repair`.

use frazil::coord::time::unix_ms;
use frazil::coord::{Claim, mend};
use serde::Serialize;

use crate::args::RepairArgs;
use crate::commands::workers::{State, views};
use crate::output::{Data, Failure, say};

#[derive(Serialize)]
struct Repaired {
    mended: usize,
    poisoned: Vec<u32>,
}

pub(super) async fn run(args: &RepairArgs) -> Result<(), Failure> {
    let (store, meta) = args.place.open_namespace().await?;
    let now = unix_ms();
    let mended = mend::lost_records(store.as_ref(), &Claim::to_judge(&meta, now), unix_ms).await?;
    let seconds = meta.value.window_ms / 1000;
    say(format_args!("{mended} lost records got a new one, which blocks them for {seconds} s"));
    let views = views(store.as_ref(), &meta, now).await?;
    let poisoned: Vec<_> =
        views.iter().filter(|view| view.state == State::Poisoned).map(|view| view.worker).collect();
    for worker in &poisoned {
        say(format_args!(
            "worker {worker} is poisoned: frazil workers repair {worker} --last-issued ID"
        ));
    }
    if args.json {
        let mut data = Data::new();
        data.json(&Repaired { mended, poisoned })?;
        data.flush()?;
    }
    Ok(())
}
