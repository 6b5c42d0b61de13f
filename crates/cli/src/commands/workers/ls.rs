//! `frazil workers ls`.

use frazil::coord::time::unix_ms;

use super::pool::Pool;
use super::table::table;
use crate::args::WorkersLsArgs;
use crate::output::{Data, Failure, say};

pub(super) async fn run(args: &WorkersLsArgs) -> Result<(), Failure> {
    let (store, meta) = args.place.look_at_namespace().await?;
    let pool = Pool::read(store.as_ref(), meta, unix_ms()).await?;
    let mut data = Data::new();
    if args.json {
        for view in &pool.views {
            data.json(view)?;
        }
    } else {
        data.text(table(&pool.views))?;
        if pool.views.is_empty() {
            say("no worker was ever used");
        }
    }
    data.flush()?;
    pool.tell_of_guard();
    Ok(())
}
