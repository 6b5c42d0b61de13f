//! `frazil store init`.

use frazil::RequestedNamespace;
use frazil::coord::Copied;
use frazil::coord::internal::Leasing;
use frazil::coord::internal::transfer::{over_blank, version_to_fill};
use frazil::coord::{Group, Put};

use crate::args::InitArgs;
use crate::output::{Data, Exit, Failure, say};

pub(super) async fn run(args: &InitArgs) -> Result<(), Failure> {
    let url = args.place.url()?;
    let meta = RequestedNamespace::new(&url, &args.layout.layout)
        .workers(args.workers.workers)
        .window(args.window)
        .meta()?;
    let store = args.place.open(Copied::Refuse).await?;
    let known = store.meta().await?;
    let blank = version_to_fill(known.as_ref());
    let meta = over_blank(meta, known.as_ref());
    let is_new = known.is_none() || blank.is_some();
    if is_new && !store.list(Group::Workers).await?.is_empty() {
        let why = "there are records without meta: the namespace is not new. Use frazil store \
                   repair, which creates it anew in quarantine";
        return Err(Failure::new(Exit::Refused, why));
    }
    match store.put_meta(blank, &meta).await? {
        Put::Done(_) => {}
        Put::Conflict => {
            let why = format!(
                "the namespace {:?} exists already: use it as it is (frazil store show)",
                args.place.namespace.as_str()
            );
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
