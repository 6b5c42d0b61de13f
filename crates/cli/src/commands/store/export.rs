//! `frazil store export`.

use frazil::coord::internal::transfer::ExportLine;
use frazil::coord::{Found, Group, Meta};

use crate::args::ExportArgs;
use crate::output::{Data, Failure, say};
use crate::words::count;

pub(super) async fn run(args: &ExportArgs) -> Result<(), Failure> {
    let (store, meta) = args.place.look_at_namespace().await?;
    let mut data = Data::new();
    let (mut records, mut outside) = (0, 0);
    data.json(&ExportLine::Meta(meta.value.clone()))?;
    for group in Group::ALL.iter().copied() {
        for entry in store.list(group).await? {
            let record = match entry.found {
                Found::Known(record) => Some(record),
                Found::Lost => None,
                Found::New => continue,
            };
            outside += usize::from(meta.value.is_outside(&entry.slot));
            data.json(&ExportLine::Record { group, name: entry.slot.name().to_owned(), record })?;
            records += 1;
        }
    }
    data.json(&ExportLine::End { records })?;
    data.flush()?;
    say(format_args!("exported {}", count(records, "record")));
    tell_of_outsiders(outside, &meta.value);
    Ok(())
}

/// Says that records are carried along which nobody can use.
pub(super) fn tell_of_outsiders(outside: usize, meta: &Meta) {
    if outside > 0 {
        say(format_args!(
            "{} of workers outside the range {} to {}: kept, and never leased",
            count(outside, "record"),
            meta.first_worker,
            meta.last_worker
        ));
    }
}
