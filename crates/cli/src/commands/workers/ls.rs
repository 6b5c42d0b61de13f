//! `frazil workers ls`.

use frazil::coord::time::unix_ms;

use super::view::{table, views};
use crate::args::WorkersLsArgs;
use crate::output::{Data, Failure, say};

pub(super) async fn run(args: &WorkersLsArgs) -> Result<(), Failure> {
    let (store, meta) = args.place.open_namespace().await?;
    let views = views(store.as_ref(), &meta, unix_ms()).await?;
    let mut data = Data::new();
    if args.json {
        for view in &views {
            data.json(view)?;
        }
    } else {
        data.text(table(&views))?;
        if views.is_empty() {
            say("no worker was ever used");
        }
    }
    data.flush()
}
