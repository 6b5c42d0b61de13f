//! `frazil store export`.

use frazil::coord::{Found, Group, Meta, Record, Slot};
use serde::{Deserialize, Serialize};

use crate::args::ExportArgs;
use crate::output::{Data, Failure, say};
use crate::words::count;

/// One line of an export: meta first, then the records, then how many they were.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Line {
    Meta(Meta),
    Record {
        group: Group,
        name: String,
        /// Lost records are exported too: whoever imports must not take them for new.
        record: Option<Record>,
    },
    /// The last line: an export that was cut off has none.
    End {
        records: usize,
    },
}

pub(super) async fn run(args: &ExportArgs) -> Result<(), Failure> {
    let (store, meta) = args.place.look_at_namespace().await?;
    let mut data = Data::new();
    let (mut records, mut outside) = (0, 0);
    data.json(&Line::Meta(meta.value.clone()))?;
    for group in Group::ALL.iter().copied() {
        for entry in store.list(group).await? {
            let record = match entry.found {
                Found::Known(record) => Some(record),
                Found::Lost => None,
                Found::New => continue,
            };
            outside += usize::from(is_outside(&entry.slot, &meta.value));
            data.json(&Line::Record { group, name: entry.slot.name().to_owned(), record })?;
            records += 1;
        }
    }
    data.json(&Line::End { records })?;
    data.flush()?;
    say(format_args!("exported {}", count(records, "record")));
    tell_of_outsiders(outside, &meta.value);
    Ok(())
}

/// Whether a slot is a worker that the namespace does not lease.
pub(super) fn is_outside(slot: &Slot, meta: &Meta) -> bool {
    slot.number().is_some_and(|number| !meta.workers().contains(&number))
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
